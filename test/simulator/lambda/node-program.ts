import { fileURLToPath } from 'node:url'
import type { Program } from './code.ts'
import type { Settings } from './settings.ts'

const bootstrap = fileURLToPath(new URL('bootstrap.ts', import.meta.url))

/** What Lambda starts Node with, 24 as well: `require` loads no ES module there. */
export const lambdaFlags = ['--no-experimental-require-module'] as const

/** What runs a folder as a function of Node.js; its handler is `<file>.<export>`. */
export const nodeProgram = (folder: string, { Handler = '' }: Settings): Program => ({
  arguments: [...lambdaFlags, bootstrap],
  folder,
  environment: { _HANDLER: Handler, LAMBDA_TASK_ROOT: folder },
})
