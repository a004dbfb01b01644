//! Short scripted replies in every wire format, streamed and whole. The forms are those of
//! wire-formats.md.

use aside_core::protocol::Protocol;
use aside_core::tags::TagReach;
use serde_json::{Value, json};

use super::{ReplyReader, aws_event, aws_exception, lines, sse};

/// One step of a scripted reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptStep {
    Thinking(&'static str),
    Text(&'static str),
    /// The number in its id, and the value of its only argument.
    Call(u32, &'static str),
}

use ScriptStep::{Call, Text, Thinking};

/// Short replies; the last two alternate, which not every format can express.
pub(super) const SCRIPTS: [&[ScriptStep]; 7] = [
    &[Text("Only “text” here.")],
    &[Thinking("Only a\n\nthought \\ here.")],
    &[Thinking("Look it up: 5 < 6 & \"x\"."), Text("It is größer.\n")],
    &[Thinking("Two at once."), Call(0, "Orléans"), Call(1, "a \"b\" \\ c")],
    &[Thinking("First,"), Text("I look 🔭."), Call(0, "日本")],
    &[Thinking("One."), Text("Uno."), Thinking("Two."), Text("Dos.")],
    &[Text("So: "), Thinking("One."), Text("Uno."), Thinking("Two."), Call(0, "x")],
];

/// One format in which a provider can send a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireFormat {
    ChatField,
    ChatDetails,
    ChatTags,
    Mistral,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
    Bedrock,
    Cohere,
}

impl WireFormat {
    pub(super) const ALL: [WireFormat; 10] = [
        WireFormat::ChatField,
        WireFormat::ChatDetails,
        WireFormat::ChatTags,
        WireFormat::Mistral,
        WireFormat::Responses,
        WireFormat::Anthropic,
        WireFormat::Gemini,
        WireFormat::Ollama,
        WireFormat::Bedrock,
        WireFormat::Cohere,
    ];

    pub(super) fn reader(self) -> ReplyReader {
        match self {
            WireFormat::ChatField | WireFormat::ChatDetails => ReplyReader::chat(),
            WireFormat::ChatTags => ReplyReader::chat().with(|rules| rules.read.tags.reach = TagReach::Anywhere),
            WireFormat::Mistral => ReplyReader::dialect("mistral"),
            WireFormat::Responses => ReplyReader::generic(Protocol::OpenaiResponses),
            WireFormat::Anthropic => ReplyReader::generic(Protocol::Anthropic),
            WireFormat::Gemini => ReplyReader::generic(Protocol::Gemini),
            WireFormat::Ollama => ReplyReader::generic(Protocol::Ollama),
            WireFormat::Bedrock => ReplyReader::generic(Protocol::Bedrock),
            WireFormat::Cohere => ReplyReader::generic(Protocol::Cohere),
        }
    }

    /// Every script that a whole body of this format can express.
    pub(super) fn scripts(self) -> impl Iterator<Item = &'static [ScriptStep]> {
        SCRIPTS.into_iter().filter(move |script| match self {
            WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::Ollama => {
                script.iter().filter(|step| matches!(step, Thinking(_))).count() < 2
            }
            WireFormat::ChatTags
            | WireFormat::Mistral
            | WireFormat::Responses
            | WireFormat::Anthropic
            | WireFormat::Gemini
            | WireFormat::Bedrock
            | WireFormat::Cohere => true,
        })
    }

    /// The frames of a stream with `letters` letters per delta.
    pub(super) fn frames(self, script: &[ScriptStep], letters: usize) -> Vec<Vec<u8>> {
        let mut frames: Vec<Vec<u8>> =
            self.payloads(script, letters).iter().map(|(name, json)| self.framed(name, json)).collect();
        if matches!(
            self,
            WireFormat::ChatField
                | WireFormat::ChatDetails
                | WireFormat::ChatTags
                | WireFormat::Mistral
                | WireFormat::Cohere
        ) {
            frames.push(sse(["[DONE]"]));
        }
        frames
    }

    /// The name and the JSON of each frame; only Bedrock has names.
    pub(super) fn payloads(self, script: &[ScriptStep], letters: usize) -> Vec<(String, String)> {
        let payload = |event: &Value| match self {
            WireFormat::Bedrock => {
                let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
                (name.clone(), payload.to_string())
            }
            _ => (String::new(), event.to_string()),
        };
        self.events(script, letters).iter().map(payload).collect()
    }

    /// One frame with this JSON, valid or not.
    pub(super) fn framed(self, name: &str, json: &str) -> Vec<u8> {
        match self {
            WireFormat::Ollama => lines([json]),
            WireFormat::Bedrock => aws_event(name, json),
            _ => sse([json]),
        }
    }

    fn events(self, script: &[ScriptStep], letters: usize) -> Vec<Value> {
        let ending = self.ending(script);
        let usage = self.usage();
        let mut out = match self {
            WireFormat::Responses => {
                vec![json!({"type": "response.created", "response": {"model": "m", "status": "in_progress"}})]
            }
            WireFormat::Anthropic => vec![
                json!({"type": "message_start", "message": {"model": "m", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            ],
            WireFormat::Bedrock => vec![json!({"messageStart": {"role": "assistant"}})],
            WireFormat::Cohere => vec![json!({"type": "message-start", "delta": {"message": {"role": "assistant"}}})],
            _ => Vec::new(),
        };
        for (place, step) in script.iter().enumerate() {
            let calls_before = script[..place].iter().filter(|step| matches!(step, Call(..))).count();
            out.extend(self.step_events(*step, place, calls_before, &pieces(step_text(*step), letters)));
        }
        out.extend(match self {
            WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::ChatTags | WireFormat::Mistral => vec![
                json!({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": ending}]}),
                json!({"choices": [], "usage": usage}),
            ],
            WireFormat::Responses => vec![json!({"type": "response.completed", "response": {"model": "m", "status": ending, "output": [], "usage": usage}})],
            WireFormat::Anthropic => vec![json!({"type": "message_delta", "delta": {"stop_reason": ending}, "usage": usage}), json!({"type": "message_stop"})],
            WireFormat::Gemini => vec![json!({"modelVersion": "m", "candidates": [{"index": 0, "finishReason": ending}], "usageMetadata": usage})],
            WireFormat::Ollama => vec![json!({"model": "m", "message": {"content": ""}, "done": true, "done_reason": ending, "prompt_eval_count": 5, "eval_count": 9})],
            WireFormat::Bedrock => vec![json!({"messageStop": {"stopReason": ending}}), json!({"metadata": {"usage": usage}})],
            WireFormat::Cohere => vec![json!({"type": "message-end", "delta": {"finish_reason": ending, "usage": usage}})],
        });
        out
    }

    /// The events of one step, its text in pieces. `place` is its index in the script, `nth`
    /// the number of calls before it.
    fn step_events(self, step: ScriptStep, place: usize, nth: usize, pieces: &[String]) -> Vec<Value> {
        let delta =
            |delta: Value| json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        let parts = |part: Value| json!({"modelVersion": "m", "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});
        let line = |message: Value| json!({"model": "m", "message": message, "done": false});
        let each = |make: &dyn Fn(&String) -> Value| pieces.iter().map(make).collect::<Vec<_>>();
        let framed = |start: Option<Value>, deltas: Vec<Value>, end: Value| {
            start.into_iter().chain(deltas).chain([end]).collect::<Vec<_>>()
        };
        match (self, step) {
            (WireFormat::ChatField, Thinking(_)) => each(&|text| delta(json!({"reasoning_content": text}))),
            (WireFormat::ChatDetails, Thinking(_)) => {
                let entry = |text: &str, seal: Value| {
                    delta(
                        json!({"reasoning_details": [{"type": "reasoning.text", "text": text, "signature": seal, "format": "f", "index": 0}]}),
                    )
                };
                each(&|text| entry(text, Value::Null)).into_iter().chain([entry("", "Sg".into())]).collect()
            }
            (WireFormat::ChatTags, Thinking(text)) => {
                self::pieces(format!("<think>{text}</think>"), pieces[0].chars().count())
                    .iter()
                    .map(|text| delta(json!({"content": text})))
                    .collect()
            }
            (WireFormat::Mistral, Thinking(_)) => each(&|text| {
                delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}))
            }),
            (WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::ChatTags | WireFormat::Mistral, Text(_)) => {
                each(&|text| delta(json!({"content": text})))
            }
            (
                WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::ChatTags | WireFormat::Mistral,
                Call(id, _),
            ) => {
                let start = delta(
                    json!({"tool_calls": [{"index": nth, "id": format!("c{id}"), "type": "function", "function": {"name": "get", "arguments": ""}}]}),
                );
                [start]
                    .into_iter()
                    .chain(each(&|text| {
                        delta(json!({"tool_calls": [{"index": nth, "function": {"arguments": text}}]}))
                    }))
                    .collect()
            }
            (WireFormat::Responses, _) => {
                let item = self.whole_step(step, place);
                let (kind, mut begun) = (item["type"].clone(), item.clone());
                let deltas = match step {
                    Thinking(_) => {
                        begun["summary"] = json!([]);
                        each(
                            &|text| json!({"type": "response.reasoning_summary_text.delta", "output_index": place, "summary_index": 0, "delta": text}),
                        )
                    }
                    Text(_) => {
                        begun["content"] = json!([]);
                        each(
                            &|text| json!({"type": "response.output_text.delta", "output_index": place, "content_index": 0, "delta": text}),
                        )
                    }
                    Call(..) => {
                        begun["arguments"] = json!("");
                        each(
                            &|text| json!({"type": "response.function_call_arguments.delta", "output_index": place, "delta": text}),
                        )
                    }
                };
                assert!(kind.is_string());
                framed(
                    Some(json!({"type": "response.output_item.added", "output_index": place, "item": begun})),
                    deltas,
                    json!({"type": "response.output_item.done", "output_index": place, "item": item}),
                )
            }
            (WireFormat::Anthropic, _) => {
                let (block, kind, member) = match step {
                    Thinking(_) => {
                        (json!({"type": "thinking", "thinking": "", "signature": ""}), "thinking_delta", "thinking")
                    }
                    Text(_) => (json!({"type": "text", "text": ""}), "text_delta", "text"),
                    Call(id, _) => (
                        json!({"type": "tool_use", "id": format!("c{id}"), "name": "get", "input": {}}),
                        "input_json_delta",
                        "partial_json",
                    ),
                };
                let mut deltas = each(
                    &|text| json!({"type": "content_block_delta", "index": place, "delta": {"type": kind, member: text}}),
                );
                if matches!(step, Thinking(_)) {
                    deltas.push(json!({"type": "content_block_delta", "index": place, "delta": {"type": "signature_delta", "signature": "Sg"}}));
                }
                framed(
                    Some(json!({"type": "content_block_start", "index": place, "content_block": block})),
                    deltas,
                    json!({"type": "content_block_stop", "index": place}),
                )
            }
            (WireFormat::Gemini, Thinking(_)) => each(&|text| parts(json!({"text": text, "thought": true}))),
            (WireFormat::Gemini, Text(_)) => each(&|text| parts(json!({"text": text}))),
            (WireFormat::Gemini, Call(..)) => vec![parts(self.whole_step(step, place))],
            (WireFormat::Ollama, Thinking(_)) => {
                each(&|text| line(json!({"role": "assistant", "content": "", "thinking": text})))
            }
            (WireFormat::Ollama, Text(_)) => each(&|text| line(json!({"role": "assistant", "content": text}))),
            (WireFormat::Ollama, Call(..)) => {
                vec![line(json!({"content": "", "tool_calls": [self.whole_step(step, place)]}))]
            }
            (WireFormat::Bedrock, _) => {
                let event = |delta: Value| json!({"contentBlockDelta": {"contentBlockIndex": place, "delta": delta, "p": "abc"}});
                let (start, deltas) = match step {
                    Thinking(_) => {
                        let seal = event(json!({"reasoningContent": {"signature": "Sg"}}));
                        (
                            None,
                            each(&|text| event(json!({"reasoningContent": {"text": text}})))
                                .into_iter()
                                .chain([seal])
                                .collect(),
                        )
                    }
                    Text(_) => (None, each(&|text| event(json!({"text": text})))),
                    Call(id, _) => {
                        let start = json!({"contentBlockStart": {"contentBlockIndex": place, "start": {"toolUse": {"toolUseId": format!("c{id}"), "name": "get"}}}});
                        (Some(start), each(&|text| event(json!({"toolUse": {"input": text}}))))
                    }
                };
                framed(start, deltas, json!({"contentBlockStop": {"contentBlockIndex": place}}))
            }
            (WireFormat::Cohere, Thinking(_) | Text(_)) => {
                let kind = if matches!(step, Thinking(_)) { "thinking" } else { "text" };
                let start = json!({"type": "content-start", "index": place, "delta": {"message": {"content": {"type": kind, kind: ""}}}});
                framed(
                    Some(start),
                    each(
                        &|text| json!({"type": "content-delta", "index": place, "delta": {"message": {"content": {kind: text}}}}),
                    ),
                    json!({"type": "content-end", "index": place}),
                )
            }
            (WireFormat::Cohere, Call(id, _)) => {
                let start = json!({"type": "tool-call-start", "index": nth, "delta": {"message": {"tool_calls": {"id": format!("c{id}"), "type": "function", "function": {"name": "get", "arguments": ""}}}}});
                framed(
                    Some(start),
                    each(
                        &|text| json!({"type": "tool-call-delta", "index": nth, "delta": {"message": {"tool_calls": {"function": {"arguments": text}}}}}),
                    ),
                    json!({"type": "tool-call-end", "index": nth}),
                )
            }
        }
    }

    /// The same reply as one body.
    pub(super) fn whole(self, script: &[ScriptStep]) -> Vec<u8> {
        let (ending, usage) = (self.ending(script), self.usage());
        let steps: Vec<Value> = script.iter().enumerate().map(|(place, step)| self.whole_step(*step, place)).collect();
        let only = |keep: fn(&ScriptStep) -> bool| {
            script.iter().zip(&steps).filter(|(step, _)| keep(step)).map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let (prose, calls) = (only(|step| !matches!(step, Call(..))), only(|step| matches!(step, Call(..))));
        let joined = |keep: fn(&ScriptStep) -> bool| {
            script.iter().filter(|step| keep(step)).map(|step| step_text(*step)).collect::<String>()
        };
        let (thought, text) = (joined(|step| matches!(step, Thinking(_))), joined(|step| matches!(step, Text(_))));
        let chat = |mut message: Value| {
            if !calls.is_empty() {
                message["tool_calls"] = calls.clone().into();
            }
            json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": ending}], "usage": usage})
        };
        let body = match self {
            WireFormat::ChatField if thought.is_empty() => chat(json!({"content": text})),
            WireFormat::ChatField => chat(json!({"content": text, "reasoning_content": thought})),
            WireFormat::ChatDetails if thought.is_empty() => chat(json!({"content": text})),
            WireFormat::ChatDetails => chat(
                json!({"content": text, "reasoning_details": [{"type": "reasoning.text", "text": thought, "signature": "Sg", "format": "f", "index": 0}]}),
            ),
            WireFormat::ChatTags => {
                chat(json!({"content": prose.iter().filter_map(Value::as_str).collect::<String>()}))
            }
            WireFormat::Mistral => chat(json!({"content": prose})),
            WireFormat::Responses => {
                json!({"object": "response", "model": "m", "status": ending, "output": steps, "usage": usage})
            }
            WireFormat::Anthropic => {
                json!({"type": "message", "model": "m", "content": steps, "stop_reason": ending, "usage": usage})
            }
            WireFormat::Gemini => {
                json!({"modelVersion": "m", "candidates": [{"index": 0, "content": {"parts": steps}, "finishReason": ending}], "usageMetadata": usage})
            }
            WireFormat::Ollama => {
                let mut message = json!({"role": "assistant", "content": text});
                if !thought.is_empty() {
                    message["thinking"] = thought.into();
                }
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                json!({"model": "m", "message": message, "done": true, "done_reason": ending, "prompt_eval_count": 5, "eval_count": 9})
            }
            WireFormat::Bedrock => {
                json!({"output": {"message": {"role": "assistant", "content": steps}}, "stopReason": ending, "usage": usage})
            }
            WireFormat::Cohere => {
                json!({"message": {"role": "assistant", "content": prose, "tool_calls": calls}, "finish_reason": ending, "usage": usage})
            }
        };
        body.to_string().into_bytes()
    }

    /// One step as it appears in a whole body.
    fn whole_step(self, step: ScriptStep, place: usize) -> Value {
        let arguments = step_text(step);
        match (self, step) {
            (WireFormat::ChatTags, Thinking(text)) => format!("<think>{text}</think>").into(),
            (
                WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::ChatTags | WireFormat::Ollama,
                Thinking(text) | Text(text),
            ) => text.into(),
            (WireFormat::Mistral, Thinking(text)) => {
                json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]})
            }
            (WireFormat::Mistral | WireFormat::Anthropic | WireFormat::Cohere, Text(text)) => {
                json!({"type": "text", "text": text})
            }
            (
                WireFormat::ChatField
                | WireFormat::ChatDetails
                | WireFormat::ChatTags
                | WireFormat::Mistral
                | WireFormat::Cohere,
                Call(id, _),
            ) => {
                json!({"id": format!("c{id}"), "type": "function", "function": {"name": "get", "arguments": arguments}})
            }
            (WireFormat::Responses, Thinking(text)) => {
                json!({"id": format!("rs_{place}"), "type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "Ec"})
            }
            (WireFormat::Responses, Text(text)) => {
                json!({"id": format!("m_{place}"), "type": "message", "content": [{"type": "output_text", "text": text}]})
            }
            (WireFormat::Responses, Call(id, _)) => {
                json!({"id": format!("fc_{place}"), "type": "function_call", "call_id": format!("c{id}"), "name": "get", "arguments": arguments})
            }
            (WireFormat::Anthropic, Thinking(text)) => json!({"type": "thinking", "thinking": text, "signature": "Sg"}),
            (WireFormat::Anthropic, Call(id, value)) => {
                json!({"type": "tool_use", "id": format!("c{id}"), "name": "get", "input": {"k": value}})
            }
            (WireFormat::Gemini, Thinking(text)) => json!({"text": text, "thought": true}),
            (WireFormat::Gemini | WireFormat::Bedrock, Text(text)) => json!({"text": text}),
            (WireFormat::Gemini, Call(id, value)) => {
                json!({"functionCall": {"id": format!("c{id}"), "name": "get", "args": {"k": value}}, "thoughtSignature": "Sg"})
            }
            (WireFormat::Ollama, Call(id, value)) => {
                json!({"id": format!("c{id}"), "function": {"name": "get", "arguments": {"k": value}}})
            }
            (WireFormat::Bedrock, Thinking(text)) => {
                json!({"reasoningContent": {"reasoningText": {"text": text, "signature": "Sg"}}})
            }
            (WireFormat::Bedrock, Call(id, value)) => {
                json!({"toolUse": {"toolUseId": format!("c{id}"), "name": "get", "input": {"k": value}}})
            }
            (WireFormat::Cohere, Thinking(text)) => json!({"type": "thinking", "thinking": text}),
        }
    }

    fn ending(self, script: &[ScriptStep]) -> &'static str {
        let called = script.iter().any(|step| matches!(step, Call(..)));
        match self {
            WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::ChatTags | WireFormat::Mistral => {
                if called {
                    "tool_calls"
                } else {
                    "stop"
                }
            }
            WireFormat::Responses => "completed",
            WireFormat::Anthropic | WireFormat::Bedrock => {
                if called {
                    "tool_use"
                } else {
                    "end_turn"
                }
            }
            WireFormat::Gemini => "STOP",
            WireFormat::Ollama => "stop",
            WireFormat::Cohere => {
                if called {
                    "TOOL_CALL"
                } else {
                    "COMPLETE"
                }
            }
        }
    }

    fn usage(self) -> Value {
        match self {
            WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::ChatTags | WireFormat::Mistral => {
                json!({"prompt_tokens": 5, "completion_tokens": 9})
            }
            WireFormat::Responses | WireFormat::Anthropic => json!({"input_tokens": 5, "output_tokens": 9}),
            WireFormat::Gemini => json!({"promptTokenCount": 5, "candidatesTokenCount": 9}),
            WireFormat::Bedrock => json!({"inputTokens": 5, "outputTokens": 9}),
            WireFormat::Cohere => json!({"tokens": {"input_tokens": 5, "output_tokens": 9}}),
            WireFormat::Ollama => Value::Null,
        }
    }

    /// A frame with valid framing and truncated JSON.
    pub(super) fn broken_frame(self) -> Vec<u8> {
        match self {
            WireFormat::Ollama => lines([r#"{"model":"m","message":{"content":"lost"#]),
            WireFormat::Bedrock => aws_event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"lost"#),
            _ => sse([r#"{"type":"x","choices":[{"delta":{"content":"lost"#]),
        }
    }

    /// An error in mid-stream, in this format.
    pub(super) fn error_frame(self) -> Vec<u8> {
        match self {
            WireFormat::ChatField | WireFormat::ChatDetails | WireFormat::ChatTags | WireFormat::Mistral => {
                sse([r#"{"error":{"message":"Overloaded","code":529}}"#])
            }
            WireFormat::Responses => {
                sse([r#"{"type":"error","code":"overloaded","message":"Overloaded","param":null}"#])
            }
            WireFormat::Anthropic => {
                sse([r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#])
            }
            WireFormat::Gemini => sse([r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"Overloaded"}}"#]),
            WireFormat::Ollama => lines([r#"{"error":"Overloaded"}"#]),
            WireFormat::Bedrock => aws_exception("throttlingException", r#"{"message":"Overloaded"}"#),
            WireFormat::Cohere => {
                sse([r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"Overloaded"}}"#])
            }
        }
    }
}

/// The text, or the arguments as JSON text.
fn step_text(step: ScriptStep) -> String {
    match step {
        Thinking(text) | Text(text) => text.to_owned(),
        Call(_, value) => json!({"k": value}).to_string(),
    }
}

fn pieces(text: impl AsRef<str>, letters: usize) -> Vec<String> {
    let all: Vec<char> = text.as_ref().chars().collect();
    all.chunks(letters.max(1)).map(|letters| letters.iter().collect()).collect()
}
