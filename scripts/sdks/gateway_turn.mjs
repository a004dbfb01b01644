// One turn with the Vercel AI SDK: history on standard input, the new history and the answer on standard output.
// Run by scripts/gateway: gateway_turn.mjs LIBRARY URL MODEL PROMPT

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, tool } from "ai";
import { text } from "node:stream/consumers";
import { z } from "zod";

const [library, url, name, prompt] = process.argv.slice(2);
const key = { apiKey: "any" };
const model = {
  "openai-compatible": () => createOpenAICompatible({ name: "aside", baseURL: `${url}/v1`, ...key })(name),
  openai: () => createOpenAI({ baseURL: `${url}/v1`, ...key }).responses(name),
  anthropic: () => createAnthropic({ baseURL: `${url}/v1`, ...key })(name),
  google: () => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, ...key })(name),
}[library]();
const weather = tool({
  description: "The weather in a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async () => "sunny",
});

const messages = [...JSON.parse(await text(process.stdin)), { role: "user", content: prompt }];
const options = library === "openai" ? { openai: { store: false, include: ["reasoning.encrypted_content"] } } : {};
const settings = { model, tools: { weather }, stopWhen: isStepCount(8), maxRetries: 0, providerOptions: options };
const result = await generateText({ ...settings, messages });
// `result.response` is of the last step only; a history without the calls before it is another conversation.
const made = result.steps.flatMap((step) => step.response.messages);
const answer = { text: result.text, messages: [...messages, ...made] };
process.stdout.write(JSON.stringify(answer));
