//! Rows as bytes, for the journal and the spill file. Written by hand: the crates that could do it are unmaintained or not
//! in the tree, and a version and a checksum would be ours all the same.
//!
//! A row is the length and the CRC-32 of what follows, a version, a kind, and the fields in their order: integers
//! as little-endian, everything of variable length after its length or number.

use aside_core::block::Time;

use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::store::{ReplyRow, SealedReceipt, WriteRow};
use crate::tenant::TenantId;

/// The version of the fields.
const VERSION: u8 = 1;
/// The kinds of rows.
const REPLY: u8 = 1;
const TOUCH: u8 = 2;
const REJECTED: u8 = 3;
const FORGET: u8 = 4;
const RECEIPT: u8 = 5;
/// The length and the checksum.
const HEADER_BYTES: usize = 8;

/// A row that is whole.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are rows")]
pub(crate) enum ReadRow {
    Row(WriteRow),
    /// Another version wrote it.
    Unknown,
}

/// Appends a row. None if it is too long.
pub(crate) fn append_row(out: &mut Vec<u8>, row: &WriteRow) -> Option<()> {
    let start = out.len();
    out.extend([0; HEADER_BYTES]);
    let mut writer = Writer(out);
    writer.row(row);
    let (header, fields) = out.get_mut(start..)?.split_at_mut_checked(HEADER_BYTES)?;
    let (length, checksum) = header.split_at_mut_checked(4)?;
    length.copy_from_slice(&u32::try_from(fields.len()).ok()?.to_le_bytes());
    checksum.copy_from_slice(&crc32fast::hash(fields).to_le_bytes());
    Some(())
}

/// Reads the first row, and returns what follows it. None if it is incomplete or damaged.
pub(crate) fn read_row(bytes: &[u8]) -> Option<(ReadRow, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let (fields, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    // The checksum of nothing is zero, so zeros would be rows.
    if fields.is_empty() || crc32fast::hash(fields) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut reader = Reader(fields);
    let row = reader.row().filter(|_| reader.0.is_empty());
    Some((row.map_or(ReadRow::Unknown, ReadRow::Row), rest))
}

struct Writer<'o>(&'o mut Vec<u8>);

impl Writer<'_> {
    fn row(&mut self, row: &WriteRow) {
        self.0.push(VERSION);
        match row {
            WriteRow::Reply { row, keys } => {
                self.0.push(REPLY);
                self.reply(row);
                self.number(keys.len());
                for (kind, key) in keys {
                    self.0.push(*kind as u8);
                    self.0.extend(key.0);
                }
            }
            WriteRow::Touch { tenant, reply, keys, expires } => self.with_keys(TOUCH, *tenant, *reply, keys, *expires),
            WriteRow::Forget { tenant, reply, keys, expires } => {
                self.with_keys(FORGET, *tenant, *reply, keys, *expires);
            }
            WriteRow::Rejected { tenant, reply, expires } => self.with_keys(REJECTED, *tenant, *reply, &[], *expires),
            WriteRow::Receipt(receipt) => {
                self.0.push(RECEIPT);
                self.0.extend(receipt.tenant.0);
                self.time(receipt.at);
                self.time(receipt.expires);
                self.0.extend(receipt.status.to_le_bytes());
                for text in [&receipt.id, &receipt.client, &receipt.model, &receipt.repaired] {
                    self.bytes(text.as_bytes());
                }
                self.bytes(&receipt.body);
            }
        }
    }

    fn reply(&mut self, row: &ReplyRow) {
        self.0.extend(row.tenant.0);
        self.0.extend(row.reply.0);
        self.0.extend(row.conversation.0);
        self.0.push(row.parent.is_some().into());
        self.0.extend(row.parent.iter().flat_map(|parent| parent.0));
        self.0.extend([u8::from(row.is_interrupted), u8::from(row.is_rejected)]);
        self.time(row.created);
        self.time(row.expires);
        self.0.extend(row.codec.to_le_bytes());
        self.0.extend((row.size as u64).to_le_bytes());
        self.bytes(row.dialect.as_bytes());
        self.bytes(row.model.as_bytes());
        self.bytes(&row.issuer);
        self.bytes(&row.body);
    }

    fn with_keys(&mut self, kind: u8, tenant: TenantId, reply: ReplyId, keys: &[Key], expires: Time) {
        self.0.push(kind);
        self.0.extend(tenant.0);
        self.0.extend(reply.0);
        self.time(expires);
        self.number(keys.len());
        keys.iter().for_each(|key| self.0.extend(key.0));
    }

    fn time(&mut self, time: Time) {
        self.0.extend(time.0.to_le_bytes());
    }

    /// A longer list makes the row too long as well, see [`append_row`].
    fn number(&mut self, n: usize) {
        self.0.extend(u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

/// The fields that are not read yet.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn row(&mut self) -> Option<WriteRow> {
        let [version, kind] = self.fixed()?;
        match (version, kind) {
            (VERSION, REPLY) => {
                let row = self.reply()?;
                let keys = self.list(|reader| {
                    let [kind] = reader.fixed()?;
                    Some((KeyKind::of_number(kind.into())?, Key(reader.fixed()?)))
                })?;
                Some(WriteRow::Reply { row, keys })
            }
            (VERSION, TOUCH | REJECTED | FORGET) => {
                let (tenant, reply) = (TenantId(self.fixed()?), ReplyId(self.fixed()?));
                let expires = self.time()?;
                let keys = self.list(|reader| reader.fixed().map(Key))?;
                match kind {
                    TOUCH => Some(WriteRow::Touch { tenant, reply, keys, expires }),
                    FORGET => Some(WriteRow::Forget { tenant, reply, keys, expires }),
                    _ => keys.is_empty().then_some(WriteRow::Rejected { tenant, reply, expires }),
                }
            }
            (VERSION, RECEIPT) => self.receipt().map(WriteRow::Receipt),
            _ => None,
        }
    }

    fn reply(&mut self) -> Option<ReplyRow> {
        Some(ReplyRow {
            tenant: TenantId(self.fixed()?),
            reply: ReplyId(self.fixed()?),
            conversation: ReplyId(self.fixed()?),
            parent: if self.flag()? { Some(ReplyId(self.fixed()?)) } else { None },
            is_interrupted: self.flag()?,
            is_rejected: self.flag()?,
            created: self.time()?,
            expires: self.time()?,
            codec: i16::from_le_bytes(self.fixed()?),
            size: usize::try_from(u64::from_le_bytes(self.fixed()?)).ok()?,
            dialect: self.text()?,
            model: self.text()?,
            issuer: self.bytes()?,
            body: self.bytes()?,
        })
    }

    fn receipt(&mut self) -> Option<SealedReceipt> {
        let tenant = TenantId(self.fixed()?);
        let (at, expires) = (self.time()?, self.time()?);
        let status = u16::from_le_bytes(self.fixed()?);
        let (id, client, model, repaired) = (self.text()?, self.text()?, self.text()?, self.text()?);
        Some(SealedReceipt { tenant, id, at, expires, client, model, status, repaired, body: self.bytes()? })
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.fixed()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn time(&mut self) -> Option<Time> {
        self.fixed().map(u64::from_le_bytes).map(Time)
    }

    fn number(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.fixed()?)).ok()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let n = self.number()?;
        let (bytes, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// Nothing is reserved for a number that may be wrong.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<WriteRow> {
        let (tenant, reply) = (TenantId([1; 16]), ReplyId([2; 12]));
        let keys = vec![Key([3; 16]), Key([4; 16])];
        let row = |parent, body: &[u8]| ReplyRow {
            tenant,
            reply,
            conversation: ReplyId([5; 12]),
            parent,
            dialect: "deepseek".to_owned(),
            model: "modèle".to_owned(),
            issuer: vec![6; 16],
            is_interrupted: parent.is_none(),
            created: Time(7),
            expires: Time(u64::MAX),
            codec: 2,
            size: 300,
            body: body.to_vec(),
            is_rejected: parent.is_some(),
        };
        let receipt = SealedReceipt {
            tenant,
            id: "req_1".to_owned(),
            at: Time(8),
            expires: Time(9),
            client: String::new(),
            model: "m".to_owned(),
            status: 429,
            repaired: "0 restored".to_owned(),
            body: vec![0, 255],
        };
        let of_reply = keys.iter().map(|key| (KeyKind::ResponseId, *key)).collect();
        vec![
            WriteRow::Reply { row: row(None, &[]), keys: Vec::new() },
            WriteRow::Reply { row: row(Some(reply), &[10; 1000]), keys: of_reply },
            WriteRow::Touch { tenant, reply, keys: keys.clone(), expires: Time(1) },
            WriteRow::Rejected { tenant, reply, expires: Time(2) },
            WriteRow::Forget { tenant, reply, keys, expires: Time(3) },
            WriteRow::Receipt(receipt),
        ]
    }

    fn written(rows: &[WriteRow]) -> Vec<u8> {
        let mut bytes = Vec::new();
        rows.iter().for_each(|row| append_row(&mut bytes, row).unwrap());
        bytes
    }

    fn read_all(mut bytes: &[u8]) -> Vec<ReadRow> {
        let mut rows = Vec::new();
        while let Some((row, rest)) = read_row(bytes) {
            rows.push(row);
            bytes = rest;
        }
        rows
    }

    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*state >> 33).unwrap() % below
    }

    #[test]
    fn g7_every_kind_of_row_is_read_as_it_was_written() {
        let rows = rows();
        let expected: Vec<ReadRow> = rows.iter().cloned().map(ReadRow::Row).collect();
        assert_eq!(read_all(&written(&rows)), expected);
        assert_eq!(read_all(&[0; 100]), [], "zeros are no rows");
    }

    #[test]
    fn g7_of_cut_rows_all_whole_ones_are_read() {
        let rows = rows();
        let bytes = written(&rows);
        for end in 0..bytes.len() {
            let n_whole = (0..rows.len()).take_while(|n| written(&rows[..=*n]).len() <= end).count();
            let expected: Vec<ReadRow> = rows[..n_whole].iter().cloned().map(ReadRow::Row).collect();
            assert_eq!(read_all(&bytes[..end]), expected, "{end}");
        }
    }

    #[test]
    fn g7_flipped_bytes_never_give_a_wrong_row() {
        let rows = rows();
        let bytes = written(&rows);
        for seed in 0..20_000 {
            let mut state = seed;
            let mut damaged = bytes.clone();
            for _ in 0..=random(&mut state, 4) {
                let at = random(&mut state, damaged.len());
                damaged[at] ^= 1 << random(&mut state, 8);
            }
            let first = damaged.iter().zip(&bytes).position(|(a, b)| a != b).unwrap_or(bytes.len());
            let found = read_all(&damaged);
            let n_before = (0..rows.len()).take_while(|n| written(&rows[..=*n]).len() <= first).count();
            assert!(found.len() >= n_before, "seed {seed}: rows before the damage are lost");
            for (found, row) in found.iter().zip(&rows) {
                assert!(matches!(found, ReadRow::Row(read) if read == row), "seed {seed}");
            }
        }
    }

    /// The fields alone, as if the checksum were correct by chance.
    #[test]
    fn g7_damaged_fields_never_panic() {
        for row in rows() {
            let bytes = written(&[row]);
            let fields = &bytes[HEADER_BYTES..];
            for seed in 0..5_000 {
                let mut state = seed;
                let mut damaged = fields[..=random(&mut state, fields.len())].to_vec();
                let at = random(&mut state, damaged.len());
                damaged[at] = u8::try_from(random(&mut state, 256)).unwrap();
                let _any = Reader(&damaged).row();
            }
        }
        let mut newer = written(&rows()[..1]);
        newer[HEADER_BYTES] = VERSION + 1;
        let checksum = crc32fast::hash(&newer[HEADER_BYTES..]);
        newer[4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        newer.extend(written(&rows()[3..4]));
        assert_eq!(read_all(&newer), [ReadRow::Unknown, ReadRow::Row(rows().remove(3))]);
    }
}
