// Checks the simulator with the Vercel AI SDK. Run by scripts/sdk with the simulator's URL.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

const url = process.argv[2];
const key = { apiKey: "any" };
const models = {
  "openai-compatible": createOpenAICompatible({ name: "sim", baseURL: `${url}/v1`, ...key })("deepseek"),
  "openai responses": createOpenAI({ baseURL: `${url}/v1`, ...key }).responses("gpt-5.6"),
  anthropic: createAnthropic({ baseURL: `${url}/v1`, ...key })("claude-sonnet-5"),
  google: createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, ...key })("gemini-3-pro-preview"),
};
const weather = tool({
  description: "The weather in a city",
  inputSchema: z.object({ city: z.string(), unit: z.enum(["c", "f"]) }),
  execute: async () => "sunny",
});

let passed = 0;
for (const [name, model] of Object.entries(models)) {
  const settings = { model, tools: { weather }, stopWhen: isStepCount(5), prompt: "sim: tool-loop 2", maxRetries: 0 };
  const whole = await generateText(settings);
  if (!whole.text.includes("Steps with tools in this turn: 2.")) throw new Error(`${name}: ${whole.text}`);
  const stream = streamText({ ...settings, onError: ({ error }) => { throw error; } });
  let text = "";
  for await (const part of stream.textStream) text += part;
  if (!text.includes("Steps with tools in this turn: 2.")) throw new Error(`${name} streamed: ${text}`);
  console.log(`ok  vercel ai sdk, ${name}: a tool loop, whole and streamed`);
  passed += 1;
}
console.log(`${passed} passed, 0 failed`);
