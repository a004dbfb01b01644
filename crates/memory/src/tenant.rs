//! One tenant: the keys that hash and encrypt everything it owns. Two tenants with
//! equal conversations share no key and no byte.

use std::borrow::Cow;
use std::fmt;

use aside_core::json_value::JsonValue;
use aside_core::{Block, Message, Origin, Role};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{digest, hmac};

use crate::random;
use crate::reference::{self, Claim, MAC_BYTES, REFERENCE_BYTES, Reference, WHOLE_REPLY};
use crate::reply_id::ReplyId;
use crate::store_key::{StoreKey, derive};

/// The prefix of an encrypted block.
const SEALED_MAGIC: &str = "asb1_";
/// The same in Base64.
const SEALED_IN_BASE64: &str = "YXNiMV";

/// Identifies a tenant in the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(pub(crate) [u8; 16]);

impl TenantId {
    /// The id of the tenant with this name.
    pub fn of(name: &str) -> TenantId {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"aside tenant\0");
        context.update(name.as_bytes());
        let mut id = [0; 16];
        id.iter_mut().zip(context.finish().as_ref()).for_each(|(out, byte)| *out = *byte);
        TenantId(id)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantId({})", URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// One tenant, with its keys.
pub struct Tenant {
    id: TenantId,
    name: String,
    hash: hmac::Key,
    reference: hmac::Key,
    seal: Sealer,
}

/// Keys are never printed.
impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenant").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tenant {
    /// A tenant with this data key. Everything else is derived from it, so
    /// deleting the key deletes the tenant.
    pub(crate) fn new(name: &str, data_key: &[u8; 32]) -> Tenant {
        let mac = |purpose: &str| hmac::Key::new(hmac::HMAC_SHA256, &derive(data_key, purpose, b""));
        Tenant {
            id: TenantId::of(name),
            name: name.to_owned(),
            hash: mac("hash"),
            reference: mac("reference"),
            seal: Sealer::new(&derive(data_key, "seal", b"")),
        }
    }

    /// A tenant of a gateway without a store.
    pub(crate) fn without_store(name: &str, key: &StoreKey) -> Tenant {
        Tenant::new(name, &key.derive("tenant", name.as_bytes()))
    }

    /// The tenant's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tenant's id in the store.
    pub fn id(&self) -> TenantId {
        self.id
    }

    /// The key of every hash.
    pub(crate) fn hash_key(&self) -> &hmac::Key {
        &self.hash
    }

    /// Encrypts bytes that belong to one row.
    pub(crate) fn seal(&self, row: &[u8], bytes: Vec<u8>) -> Vec<u8> {
        self.seal.seal(&self.bound_to(row), bytes)
    }

    /// Decrypts bytes. None if they were changed, moved to another row, or
    /// encrypted with another key.
    pub(crate) fn open(&self, row: &[u8], sealed: Vec<u8>) -> Option<Vec<u8>> {
        self.seal.open(&self.bound_to(row), sealed)
    }

    fn bound_to(&self, row: &[u8]) -> Vec<u8> {
        [&self.id.0, row].concat()
    }

    /// A reference to a block of a reply.
    pub(crate) fn refer_to(&self, reply: ReplyId, block: u16) -> Reference {
        let mut bytes = [0; REFERENCE_BYTES];
        let named = reply.0.into_iter().chain(block.to_be_bytes());
        let named: Vec<u8> = named.collect();
        let mac = hmac::sign(&self.reference, &named);
        let all = named.iter().chain(mac.as_ref().iter().take(MAC_BYTES));
        bytes.iter_mut().zip(all).for_each(|(out, byte)| *out = *byte);
        Reference { bytes }
    }

    /// The reply and the block that an opaque value refers to. None if it is no
    /// reference, or forged, or another tenant's.
    pub fn read_reference(&self, text: &str) -> Option<(ReplyId, u16)> {
        reference::read_claim(text).and_then(|claim| self.checked(&claim))
    }

    /// The reply and the block that the id of an item refers to.
    pub fn read_item_id(&self, id: &str) -> Option<(ReplyId, u16)> {
        reference::read_item_id(id).and_then(|claim| self.checked(&claim))
    }

    /// The reply that an id of a response names.
    pub fn read_response_id(&self, id: &str) -> Option<ReplyId> {
        let (reply, block) = self.read_item_id(id)?;
        (block == WHOLE_REPLY).then_some(reply)
    }

    fn checked(&self, claim: &Claim) -> Option<(ReplyId, u16)> {
        let true_bytes = self.refer_to(claim.reply, claim.block).bytes;
        // Compared in constant time, so that the duration reveals nothing.
        let difference = true_bytes.iter().zip(&claim.bytes).fold(0, |all, (a, b)| all | (a ^ b));
        (difference == 0).then_some((claim.reply, claim.block))
    }

    /// A whole block as an opaque value, for gateways without a store. It names
    /// who issued the block, and so who may get it back.
    pub fn seal_block(&self, block: &Block, origin: &Origin) -> String {
        let message = Message::new(Role::Assistant, vec![block.clone()]);
        let json = Message { origin: Some(origin.clone()), ..message }.to_json();
        let sealed = self.seal(SEALED_MAGIC.as_bytes(), json.into_bytes());
        format!("{SEALED_MAGIC}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// The block in an opaque value, and who issued it. None if it is forged or
    /// another tenant's.
    pub fn open_block(&self, text: &str) -> Option<(Block, Origin)> {
        let text = sealed_text(text)?;
        let sealed = URL_SAFE_NO_PAD.decode(text.strip_prefix(SEALED_MAGIC)?).ok()?;
        let json = String::from_utf8(self.open(SEALED_MAGIC.as_bytes(), sealed)?).ok()?;
        let message = Message::from_json(&json).ok()?;
        Some((message.blocks.into_iter().next()?, message.origin.unwrap_or_default()))
    }

    /// Whether an opaque value claims to be one of ours. It may be forged.
    pub(crate) fn looks_like_ours(text: &str) -> bool {
        sealed_text(text).is_some() || reference::looks_like_reference(text)
    }
}

/// An encrypted block as it is, or from bytes in Base64, in which some clients keep
/// opaque values.
fn sealed_text(text: &str) -> Option<Cow<'_, str>> {
    if text.starts_with(SEALED_MAGIC) {
        return Some(Cow::Borrowed(text));
    }
    if !text.starts_with(SEALED_IN_BASE64) {
        return None;
    }
    let unpadded = text.trim_end_matches('=');
    let bytes = URL_SAFE_NO_PAD.decode(unpadded).or_else(|_| STANDARD_NO_PAD.decode(unpadded)).ok()?;
    String::from_utf8(bytes).ok().filter(|text| text.starts_with(SEALED_MAGIC)).map(Cow::Owned)
}

/// Encrypts bytes with AES-256-GCM and a random nonce.
pub(crate) struct Sealer(LessSafeKey);

impl Sealer {
    #[expect(clippy::expect_used, reason = "the key has the length that the algorithm takes")]
    pub(crate) fn new(key: &[u8; 32]) -> Sealer {
        Sealer(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("32 bytes")))
    }

    /// The nonce, then the encrypted bytes, then the tag.
    #[expect(clippy::expect_used, reason = "sealing fails only beyond 64 GiB")]
    pub(crate) fn seal(&self, bound_to: &[u8], mut bytes: Vec<u8>) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = random::bytes();
        let key = &self.0;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(bound_to), &mut bytes)
            .expect("short enough");
        let mut out = Vec::with_capacity(NONCE_LEN + bytes.len());
        out.extend_from_slice(&nonce);
        out.append(&mut bytes);
        out
    }

    pub(crate) fn open(&self, bound_to: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let (nonce, _) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let bytes = sealed.get_mut(NONCE_LEN..)?;
        let n = self.0.open_in_place(nonce, Aad::from(bound_to), bytes).ok()?.len();
        sealed.drain(..NONCE_LEN);
        sealed.truncate(n);
        Some(sealed)
    }
}

#[cfg(test)]
mod tests {
    use aside_core::Text;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn g2_a_reference_is_read_in_every_form_by_its_tenant_alone() {
        let (ours, other) = (Tenant::new("a", &[1; 32]), Tenant::new("b", &[2; 32]));
        let reply = ReplyId::random();
        let reference = ours.refer_to(reply, 7);
        assert_eq!(
            (reference.text().len(), reference.padded().len(), reference.base64_bytes().len()),
            (35, 64, 64),
            "the lengths that clients accept"
        );
        let with_other_alphabet = reference.base64_bytes().replace('+', "-").replace('/', "_");
        for form in [reference.text(), reference.padded(), reference.base64_bytes(), with_other_alphabet] {
            assert_eq!(ours.read_reference(&form), Some((reply, 7)), "{form}");
            assert_eq!(other.read_reference(&form), None, "{form}");
            assert!(Tenant::looks_like_ours(&form), "{form}");
        }
        let id = reference.item_id("rs_");
        assert_eq!((ours.read_item_id(&id), other.read_item_id(&id)), (Some((reply, 7)), None));
        assert_eq!(ours.read_response_id(&ours.refer_to(reply, WHOLE_REPLY).item_id("resp_")), Some(reply));
        assert_eq!(ours.read_response_id(&id), None, "a block is no response");
        for forged in ["", "asd1_", "asd1_AAAA", "EqQBCkYIBRgCKkA=", &format!("{}x", reference.text())] {
            assert_eq!(ours.read_reference(forged), None, "{forged}");
        }
        for at in 5..35 {
            let mut forged = reference.text().into_bytes();
            forged[at] = if forged[at] == b'B' { b'C' } else { b'B' };
            let forged = String::from_utf8(forged).expect("ASCII");
            assert_eq!(ours.read_reference(&forged), None, "{forged}");
        }
    }

    #[test]
    fn g2_a_sealed_block_is_opened_by_its_tenant_alone() {
        let (ours, other) = (Tenant::new("a", &[1; 32]), Tenant::new("b", &[2; 32]));
        let block = Block::Text(Text { text: "four".to_owned(), ..Text::default() });
        let origin = Origin::default().with_provider("anthropic".to_owned());
        let sealed = ours.seal_block(&block, &origin);
        let in_base64 = STANDARD.encode(&sealed);
        let with_other_alphabet = in_base64.replace('+', "-").replace('/', "_");
        for form in [sealed.clone(), in_base64, with_other_alphabet] {
            assert_eq!(ours.open_block(&form), Some((block.clone(), origin.clone())), "{form}");
            assert_eq!(other.open_block(&form), None, "{form}");
            assert!(Tenant::looks_like_ours(&form), "{form}");
        }
        assert_eq!(ours.open_block(&sealed.replace("asb1_", "asb1_A")), None);
    }

    #[test]
    fn sealed_bytes_cannot_move_to_another_row() {
        let tenant = Tenant::new("a", &[1; 32]);
        let sealed = tenant.seal(b"row 1", b"thought".to_vec());
        assert_eq!(tenant.open(b"row 2", sealed.clone()), None);
        assert_eq!(tenant.open(b"row 1", sealed).as_deref(), Some(b"thought".as_slice()));
        assert_eq!(tenant.open(b"row 1", vec![0; 5]), None);
    }
}
