#!/usr/bin/env node
// Starts `plat` with the Node.js of the project if that of the caller cannot run TypeScript.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const main = new URL('../src/main.ts', import.meta.url)

if (process.features.typescript) {
  await import(main.href)
} else {
  const node = createRequire(import.meta.url).resolve('node/bin/node')
  const child = spawn(node, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
}
