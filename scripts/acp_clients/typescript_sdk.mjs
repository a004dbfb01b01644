// Sends prompts with the TypeScript SDK, and prints all notifications as one JSON document.
//
//   node typescript_sdk.mjs FOLDER PROMPTS COMMAND ARGUMENT…
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [folder, prompts, command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const updates = [];
const stops = [];
const client = acp
  .client({ name: "aside-tests" })
  .onRequest(acp.methods.client.session.requestPermission, () => ({ outcome: { outcome: "selected", optionId: "once" } }))
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    updates.push(params.update);
  });
await client.connectWith(stream, async (ctx) => {
  const { protocolVersion } = await ctx.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  if (protocolVersion !== 1) throw new Error(`version ${protocolVersion}`);
  const { sessionId } = await ctx.request(acp.methods.agent.session.new, { cwd: folder, mcpServers: [] });
  for (const text of JSON.parse(prompts)) {
    const { stopReason } = await ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    stops.push(stopReason);
  }
});
agent.stdin.end();
console.log(JSON.stringify({ updates, stops }));
