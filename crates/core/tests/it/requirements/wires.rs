//! One small script, spoken in every protocol, streamed and whole. The shapes
//! are those of wire-formats.md.

use aside_core::protocol::Protocol;
use aside_core::tags::Reach;
use serde_json::{Value, json};

use super::{Reader, aws_event, aws_exception, lines, sse};

/// What a reply says, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    Thought(&'static str),
    Text(&'static str),
    /// The number in its id, and a value for its only argument.
    Call(u32, &'static str),
}

use Say::{Call, Text, Thought};

/// Short replies; the last two go to and fro, which not every wire can say.
pub(super) const SCRIPTS: [&[Say]; 7] = [
    &[Text("Only “text” here.")],
    &[Thought("Only a\n\nthought \\ here.")],
    &[Thought("Look it up: 5 < 6 & \"x\"."), Text("It is größer.\n")],
    &[Thought("Two at once."), Call(0, "Orléans"), Call(1, "a \"b\" \\ c")],
    &[Thought("First,"), Text("I look 🔭."), Call(0, "日本")],
    &[Thought("One."), Text("Uno."), Thought("Two."), Text("Dos.")],
    &[Text("So: "), Thought("One."), Text("Uno."), Thought("Two."), Call(0, "x")],
];

/// One way a provider can carry a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
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

impl Wire {
    pub(super) const ALL: [Wire; 10] = [
        Wire::ChatField,
        Wire::ChatDetails,
        Wire::ChatTags,
        Wire::Mistral,
        Wire::Responses,
        Wire::Anthropic,
        Wire::Gemini,
        Wire::Ollama,
        Wire::Bedrock,
        Wire::Cohere,
    ];

    pub(super) fn reader(self) -> Reader {
        match self {
            Wire::ChatField | Wire::ChatDetails => Reader::chat(),
            Wire::ChatTags => Reader::chat().with(|rules| rules.read.tags.reach = Reach::Anywhere),
            Wire::Mistral => Reader::dialect("mistral"),
            Wire::Responses => Reader::generic(Protocol::OpenaiResponses),
            Wire::Anthropic => Reader::generic(Protocol::Anthropic),
            Wire::Gemini => Reader::generic(Protocol::Gemini),
            Wire::Ollama => Reader::generic(Protocol::Ollama),
            Wire::Bedrock => Reader::generic(Protocol::Bedrock),
            Wire::Cohere => Reader::generic(Protocol::Cohere),
        }
    }

    /// Every script that a whole body of this wire can say.
    pub(super) fn scripts(self) -> impl Iterator<Item = &'static [Say]> {
        SCRIPTS.into_iter().filter(move |script| match self {
            Wire::ChatField | Wire::ChatDetails | Wire::Ollama => {
                script.iter().filter(|say| matches!(say, Thought(_))).count() < 2
            }
            Wire::ChatTags
            | Wire::Mistral
            | Wire::Responses
            | Wire::Anthropic
            | Wire::Gemini
            | Wire::Bedrock
            | Wire::Cohere => true,
        })
    }

    /// The frames of a stream, `letters` a delta.
    pub(super) fn frames(self, script: &[Say], letters: usize) -> Vec<Vec<u8>> {
        let events = self.events(script, letters);
        let frame = |event: &Value| match self {
            Wire::Ollama => lines([event.to_string()]),
            Wire::Bedrock => {
                let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
                aws_event(name, &payload.to_string())
            }
            _ => sse([event.to_string()]),
        };
        let mut frames: Vec<Vec<u8>> = events.iter().map(frame).collect();
        if matches!(self, Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral | Wire::Cohere) {
            frames.push(sse(["[DONE]"]));
        }
        frames
    }

    fn events(self, script: &[Say], letters: usize) -> Vec<Value> {
        let ending = self.ending(script);
        let usage = self.usage();
        let mut out = match self {
            Wire::Responses => {
                vec![json!({"type": "response.created", "response": {"model": "m", "status": "in_progress"}})]
            }
            Wire::Anthropic => vec![
                json!({"type": "message_start", "message": {"model": "m", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            ],
            Wire::Bedrock => vec![json!({"messageStart": {"role": "assistant"}})],
            Wire::Cohere => vec![json!({"type": "message-start", "delta": {"message": {"role": "assistant"}}})],
            _ => Vec::new(),
        };
        for (place, say) in script.iter().enumerate() {
            let said_before = script[..place].iter().filter(|say| matches!(say, Call(..))).count();
            out.extend(self.say(*say, place, said_before, &pieces(say_text(*say), letters)));
        }
        out.extend(match self {
            Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral => vec![
                json!({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": ending}]}),
                json!({"choices": [], "usage": usage}),
            ],
            Wire::Responses => vec![json!({"type": "response.completed", "response": {"model": "m", "status": ending, "output": [], "usage": usage}})],
            Wire::Anthropic => vec![json!({"type": "message_delta", "delta": {"stop_reason": ending}, "usage": usage}), json!({"type": "message_stop"})],
            Wire::Gemini => vec![json!({"modelVersion": "m", "candidates": [{"index": 0, "finishReason": ending}], "usageMetadata": usage})],
            Wire::Ollama => vec![json!({"model": "m", "message": {"content": ""}, "done": true, "done_reason": ending, "prompt_eval_count": 5, "eval_count": 9})],
            Wire::Bedrock => vec![json!({"messageStop": {"stopReason": ending}}), json!({"metadata": {"usage": usage}})],
            Wire::Cohere => vec![json!({"type": "message-end", "delta": {"finish_reason": ending, "usage": usage}})],
        });
        out
    }

    /// One thing said, in pieces. `place` is its place in the script, `nth` the
    /// number of calls before it.
    fn say(self, say: Say, place: usize, nth: usize, pieces: &[String]) -> Vec<Value> {
        let delta =
            |delta: Value| json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        let parts = |part: Value| json!({"modelVersion": "m", "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});
        let line = |message: Value| json!({"model": "m", "message": message, "done": false});
        let each = |make: &dyn Fn(&String) -> Value| pieces.iter().map(make).collect::<Vec<_>>();
        let framed = |start: Option<Value>, deltas: Vec<Value>, end: Value| {
            start.into_iter().chain(deltas).chain([end]).collect::<Vec<_>>()
        };
        match (self, say) {
            (Wire::ChatField, Thought(_)) => each(&|text| delta(json!({"reasoning_content": text}))),
            (Wire::ChatDetails, Thought(_)) => {
                let entry = |text: &str, seal: Value| {
                    delta(
                        json!({"reasoning_details": [{"type": "reasoning.text", "text": text, "signature": seal, "format": "f", "index": 0}]}),
                    )
                };
                each(&|text| entry(text, Value::Null)).into_iter().chain([entry("", "Sg".into())]).collect()
            }
            (Wire::ChatTags, Thought(text)) => {
                self::pieces(format!("<think>{text}</think>"), pieces[0].chars().count())
                    .iter()
                    .map(|text| delta(json!({"content": text})))
                    .collect()
            }
            (Wire::Mistral, Thought(_)) => each(&|text| {
                delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}))
            }),
            (Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral, Text(_)) => {
                each(&|text| delta(json!({"content": text})))
            }
            (Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral, Call(id, _)) => {
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
            (Wire::Responses, _) => {
                let item = self.whole_say(say, place);
                let (kind, mut begun) = (item["type"].clone(), item.clone());
                let deltas = match say {
                    Thought(_) => {
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
            (Wire::Anthropic, _) => {
                let (block, kind, member) = match say {
                    Thought(_) => {
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
                if matches!(say, Thought(_)) {
                    deltas.push(json!({"type": "content_block_delta", "index": place, "delta": {"type": "signature_delta", "signature": "Sg"}}));
                }
                framed(
                    Some(json!({"type": "content_block_start", "index": place, "content_block": block})),
                    deltas,
                    json!({"type": "content_block_stop", "index": place}),
                )
            }
            (Wire::Gemini, Thought(_)) => each(&|text| parts(json!({"text": text, "thought": true}))),
            (Wire::Gemini, Text(_)) => each(&|text| parts(json!({"text": text}))),
            (Wire::Gemini, Call(..)) => vec![parts(self.whole_say(say, place))],
            (Wire::Ollama, Thought(_)) => {
                each(&|text| line(json!({"role": "assistant", "content": "", "thinking": text})))
            }
            (Wire::Ollama, Text(_)) => each(&|text| line(json!({"role": "assistant", "content": text}))),
            (Wire::Ollama, Call(..)) => vec![line(json!({"content": "", "tool_calls": [self.whole_say(say, place)]}))],
            (Wire::Bedrock, _) => {
                let event = |delta: Value| json!({"contentBlockDelta": {"contentBlockIndex": place, "delta": delta, "p": "abc"}});
                let (start, deltas) = match say {
                    Thought(_) => {
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
            (Wire::Cohere, Thought(_) | Text(_)) => {
                let kind = if matches!(say, Thought(_)) { "thinking" } else { "text" };
                let start = json!({"type": "content-start", "index": place, "delta": {"message": {"content": {"type": kind, kind: ""}}}});
                framed(
                    Some(start),
                    each(
                        &|text| json!({"type": "content-delta", "index": place, "delta": {"message": {"content": {kind: text}}}}),
                    ),
                    json!({"type": "content-end", "index": place}),
                )
            }
            (Wire::Cohere, Call(id, _)) => {
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
    pub(super) fn whole(self, script: &[Say]) -> Vec<u8> {
        let (ending, usage) = (self.ending(script), self.usage());
        let said: Vec<Value> = script.iter().enumerate().map(|(place, say)| self.whole_say(*say, place)).collect();
        let only = |keep: fn(&Say) -> bool| {
            script.iter().zip(&said).filter(|(say, _)| keep(say)).map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let (prose, calls) = (only(|say| !matches!(say, Call(..))), only(|say| matches!(say, Call(..))));
        let joined = |keep: fn(&Say) -> bool| {
            script.iter().filter(|say| keep(say)).map(|say| say_text(*say)).collect::<String>()
        };
        let (thought, text) = (joined(|say| matches!(say, Thought(_))), joined(|say| matches!(say, Text(_))));
        let chat = |mut message: Value| {
            if !calls.is_empty() {
                message["tool_calls"] = calls.clone().into();
            }
            json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": ending}], "usage": usage})
        };
        let body = match self {
            Wire::ChatField if thought.is_empty() => chat(json!({"content": text})),
            Wire::ChatField => chat(json!({"content": text, "reasoning_content": thought})),
            Wire::ChatDetails if thought.is_empty() => chat(json!({"content": text})),
            Wire::ChatDetails => chat(
                json!({"content": text, "reasoning_details": [{"type": "reasoning.text", "text": thought, "signature": "Sg", "format": "f", "index": 0}]}),
            ),
            Wire::ChatTags => chat(json!({"content": prose.iter().filter_map(Value::as_str).collect::<String>()})),
            Wire::Mistral => chat(json!({"content": prose})),
            Wire::Responses => {
                json!({"object": "response", "model": "m", "status": ending, "output": said, "usage": usage})
            }
            Wire::Anthropic => {
                json!({"type": "message", "model": "m", "content": said, "stop_reason": ending, "usage": usage})
            }
            Wire::Gemini => {
                json!({"modelVersion": "m", "candidates": [{"index": 0, "content": {"parts": said}, "finishReason": ending}], "usageMetadata": usage})
            }
            Wire::Ollama => {
                let mut message = json!({"role": "assistant", "content": text});
                if !thought.is_empty() {
                    message["thinking"] = thought.into();
                }
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                json!({"model": "m", "message": message, "done": true, "done_reason": ending, "prompt_eval_count": 5, "eval_count": 9})
            }
            Wire::Bedrock => {
                json!({"output": {"message": {"role": "assistant", "content": said}}, "stopReason": ending, "usage": usage})
            }
            Wire::Cohere => {
                json!({"message": {"role": "assistant", "content": prose, "tool_calls": calls}, "finish_reason": ending, "usage": usage})
            }
        };
        body.to_string().into_bytes()
    }

    /// One thing said, as it stands in a whole body.
    fn whole_say(self, say: Say, place: usize) -> Value {
        let arguments = say_text(say);
        match (self, say) {
            (Wire::ChatTags, Thought(text)) => format!("<think>{text}</think>").into(),
            (Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Ollama, Thought(text) | Text(text)) => {
                text.into()
            }
            (Wire::Mistral, Thought(text)) => json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]}),
            (Wire::Mistral | Wire::Anthropic | Wire::Cohere, Text(text)) => json!({"type": "text", "text": text}),
            (Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral | Wire::Cohere, Call(id, _)) => {
                json!({"id": format!("c{id}"), "type": "function", "function": {"name": "get", "arguments": arguments}})
            }
            (Wire::Responses, Thought(text)) => {
                json!({"id": format!("rs_{place}"), "type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "Ec"})
            }
            (Wire::Responses, Text(text)) => {
                json!({"id": format!("m_{place}"), "type": "message", "content": [{"type": "output_text", "text": text}]})
            }
            (Wire::Responses, Call(id, _)) => {
                json!({"id": format!("fc_{place}"), "type": "function_call", "call_id": format!("c{id}"), "name": "get", "arguments": arguments})
            }
            (Wire::Anthropic, Thought(text)) => json!({"type": "thinking", "thinking": text, "signature": "Sg"}),
            (Wire::Anthropic, Call(id, value)) => {
                json!({"type": "tool_use", "id": format!("c{id}"), "name": "get", "input": {"k": value}})
            }
            (Wire::Gemini, Thought(text)) => json!({"text": text, "thought": true}),
            (Wire::Gemini | Wire::Bedrock, Text(text)) => json!({"text": text}),
            (Wire::Gemini, Call(id, value)) => {
                json!({"functionCall": {"id": format!("c{id}"), "name": "get", "args": {"k": value}}, "thoughtSignature": "Sg"})
            }
            (Wire::Ollama, Call(id, value)) => {
                json!({"id": format!("c{id}"), "function": {"name": "get", "arguments": {"k": value}}})
            }
            (Wire::Bedrock, Thought(text)) => {
                json!({"reasoningContent": {"reasoningText": {"text": text, "signature": "Sg"}}})
            }
            (Wire::Bedrock, Call(id, value)) => {
                json!({"toolUse": {"toolUseId": format!("c{id}"), "name": "get", "input": {"k": value}}})
            }
            (Wire::Cohere, Thought(text)) => json!({"type": "thinking", "thinking": text}),
        }
    }

    fn ending(self, script: &[Say]) -> &'static str {
        let called = script.iter().any(|say| matches!(say, Call(..)));
        match self {
            Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral => {
                if called {
                    "tool_calls"
                } else {
                    "stop"
                }
            }
            Wire::Responses => "completed",
            Wire::Anthropic | Wire::Bedrock => {
                if called {
                    "tool_use"
                } else {
                    "end_turn"
                }
            }
            Wire::Gemini => "STOP",
            Wire::Ollama => "stop",
            Wire::Cohere => {
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
            Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral => {
                json!({"prompt_tokens": 5, "completion_tokens": 9})
            }
            Wire::Responses | Wire::Anthropic => json!({"input_tokens": 5, "output_tokens": 9}),
            Wire::Gemini => json!({"promptTokenCount": 5, "candidatesTokenCount": 9}),
            Wire::Bedrock => json!({"inputTokens": 5, "outputTokens": 9}),
            Wire::Cohere => json!({"tokens": {"input_tokens": 5, "output_tokens": 9}}),
            Wire::Ollama => Value::Null,
        }
    }

    /// A frame of the right framing whose JSON breaks off.
    pub(super) fn broken_frame(self) -> Vec<u8> {
        match self {
            Wire::Ollama => lines([r#"{"model":"m","message":{"content":"lost"#]),
            Wire::Bedrock => aws_event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"lost"#),
            _ => sse([r#"{"type":"x","choices":[{"delta":{"content":"lost"#]),
        }
    }

    /// How this wire says in mid-stream that it fails.
    pub(super) fn error_frame(self) -> Vec<u8> {
        match self {
            Wire::ChatField | Wire::ChatDetails | Wire::ChatTags | Wire::Mistral => {
                sse([r#"{"error":{"message":"Overloaded","code":529}}"#])
            }
            Wire::Responses => sse([r#"{"type":"error","code":"overloaded","message":"Overloaded","param":null}"#]),
            Wire::Anthropic => sse([r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#]),
            Wire::Gemini => sse([r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"Overloaded"}}"#]),
            Wire::Ollama => lines([r#"{"error":"Overloaded"}"#]),
            Wire::Bedrock => aws_exception("throttlingException", r#"{"message":"Overloaded"}"#),
            Wire::Cohere => sse([r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"Overloaded"}}"#]),
        }
    }
}

/// Its text, or its arguments as JSON text.
fn say_text(say: Say) -> String {
    match say {
        Thought(text) | Text(text) => text.to_owned(),
        Call(_, value) => json!({"k": value}).to_string(),
    }
}

fn pieces(text: impl AsRef<str>, letters: usize) -> Vec<String> {
    let all: Vec<char> = text.as_ref().chars().collect();
    all.chunks(letters.max(1)).map(|letters| letters.iter().collect()).collect()
}
