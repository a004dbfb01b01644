//! D17: any chunking gives the same events, and a stream equals its whole body.

use aside_core::block::{Block, Reply};
use aside_core::event::Event;
use aside_core::wire::Decoder;

use super::scripted_replies::{ScriptStep, WireFormat};
use super::{as_json, drawn, every, same};
use crate::support::{decode, events};

/// A reply in the form of a script.
fn reply_steps(reply: &Reply) -> Vec<(&'static str, String)> {
    let block = |block: &Block| match block {
        Block::Thinking(thinking) => ("thought", thinking.text().to_owned()),
        Block::Text(text) => ("text", text.text.clone()),
        Block::ToolCall(call) => ("call", format!("{} {:?}", call.id.as_str(), call.arguments)),
        other => panic!("no script says {other:?}"),
    };
    reply.blocks.iter().map(block).collect()
}

fn script_steps(script: &[ScriptStep]) -> Vec<(&'static str, String)> {
    let step = |step: &ScriptStep| match step {
        ScriptStep::Thinking(text) => ("thought", (*text).to_owned()),
        ScriptStep::Text(text) => ("text", (*text).to_owned()),
        ScriptStep::Call(id, value) => {
            ("call", format!("c{id} Json({:?})", serde_json::json!({"k": value}).to_string()))
        }
    };
    script.iter().map(step).collect()
}

fn all_streams() -> Vec<(String, WireFormat, &'static [ScriptStep], usize)> {
    let mut out = Vec::new();
    for wire in WireFormat::ALL {
        for (number, script) in wire.scripts().enumerate() {
            for letters in [1, 3, 1000] {
                out.push((format!("{wire:?}, script {number}, {letters} letters a delta"), wire, script, letters));
            }
        }
    }
    out
}

#[test]
fn d17_every_chunk_size_gives_the_same_events() {
    every(all_streams(), |(name, wire, script, letters)| {
        let (reader, bytes) = (wire.reader(), wire.frames(script, letters).concat());
        let one = events(reader.protocol, &reader.rules, [bytes.as_slice()]);
        // Every chunk size for the shortest form, a few for the others.
        let most = if letters == 1000 && script.len() == 2 { bytes.len() } else { 5 };
        for size in (1..=most).chain([8, 13, 64]) {
            let many = events(reader.protocol, &reader.rules, bytes.chunks(size));
            same(&format!("{name}, in pieces of {size}"), many, one.clone())?;
        }
        Ok(())
    });
}

#[test]
fn d17_a_cut_anywhere_gives_the_same_events() {
    every(WireFormat::ALL, |wire| {
        let (reader, bytes) = (wire.reader(), wire.frames(wire.scripts().nth(4).unwrap(), 1000).concat());
        let one = events(reader.protocol, &reader.rules, [bytes.as_slice()]);
        for at in 0..bytes.len() {
            let two = events(reader.protocol, &reader.rules, [&bytes[..at], &bytes[at..]]);
            same(&format!("{wire:?}, cut at {at}"), two, one.clone())?;
        }
        Ok(())
    });
}

#[test]
fn d17_empty_chunks_change_nothing() {
    every(WireFormat::ALL, |wire| {
        let script = wire.scripts().nth(2).unwrap();
        let (reader, frames) = (wire.reader(), wire.frames(script, 3));
        let one = events(reader.protocol, &reader.rules, [frames.concat().as_slice()]);
        let padded = frames.iter().flat_map(|frame| [&[], frame.as_slice(), &[]]);
        same(&format!("{wire:?}"), events(reader.protocol, &reader.rules, padded), one)
    });
}

#[test]
fn d17_a_stream_is_its_whole_body() {
    every(all_streams(), |(name, wire, script, letters)| {
        let (reader, whole) = (wire.reader(), wire.whole(script));
        let (streamed, outcome) =
            decode(reader.protocol, &reader.rules, &wire.frames(script, letters).concat(), usize::MAX);
        same(&format!("{name}: understood"), outcome.is_ok(), true)?;
        same(&format!("{name}, streamed: {}", drawn(&streamed)), reply_steps(&streamed), script_steps(script))?;
        let (body, outcome) = decode(reader.protocol, &reader.rules, &whole, usize::MAX);
        same(&format!("{name}: understood whole"), outcome.is_ok(), true)?;
        same(&format!("{name}, whole"), reply_steps(&body), script_steps(script))?;
        let (streamed, body) = (as_json(&streamed), as_json(&body));
        for key in ["blocks", "usage", "finish", "model", "error", "notices"] {
            same(&format!("{name}: {key}"), streamed[key].clone(), body[key].clone())?;
        }
        same(
            &format!("{name}: counted"),
            (streamed["usage"]["input"].clone(), streamed["usage"]["output"].clone()),
            (5.into(), 9.into()),
        )
    });
}

#[test]
fn d17_a_whole_body_may_come_in_pieces_and_be_indented() {
    every(WireFormat::ALL, |wire| {
        let script = wire.scripts().nth(3).unwrap();
        let (reader, whole) = (wire.reader(), wire.whole(script));
        let one = events(reader.protocol, &reader.rules, [whole.as_slice()]);
        for size in 1..=40 {
            same(
                &format!("{wire:?}, in pieces of {size}"),
                events(reader.protocol, &reader.rules, whole.chunks(size)),
                one.clone(),
            )?;
        }
        let value: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        let indented = format!("\n\n  {}\n", serde_json::to_string_pretty(&value).unwrap());
        let blocks = |bytes: &[u8]| as_json(&reader.reply(bytes))["blocks"].clone();
        same(&format!("{wire:?}, indented"), blocks(indented.as_bytes()), blocks(&whole))
    });
}

/// A front end shows text as it grows, so a whole body must grow too.
#[test]
fn d17_the_text_of_a_whole_body_arrives_as_growth() {
    every(WireFormat::ALL, |wire| {
        for script in wire.scripts() {
            let (reader, bytes) = (wire.reader(), wire.whole(script));
            let mut grown = String::new();
            let mut decoder = Decoder::new(reader.protocol, &reader.rules);
            let mut take = |event: Event<'_>| {
                if let Event::Grew { text, .. } = event {
                    grown.push_str(text);
                }
            };
            decoder.push(&bytes, &mut take);
            decoder.finish(&mut take).unwrap();
            let reply = reader.reply(&bytes);
            for block in &reply.blocks {
                let text = match block {
                    Block::Text(text) => text.text.as_str(),
                    Block::Thinking(thinking) => thinking.text(),
                    _ => "",
                };
                same(&format!("{wire:?}: {}", drawn(&reply)), grown.contains(text), true)?;
            }
        }
        Ok(())
    });
}
