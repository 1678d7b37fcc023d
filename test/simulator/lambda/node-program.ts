import { fileURLToPath } from 'node:url'
import type { Program } from './code.ts'
import type { Settings } from './function.ts'

const bootstrap = fileURLToPath(new URL('bootstrap.ts', import.meta.url))

/** Lambda's flags for Node 24: `require` loads no ES module. */
export const lambdaFlags = ['--no-experimental-require-module'] as const

export const nodeProgram = (folder: string, { Handler = '' }: Settings): Program => ({
  arguments: [...lambdaFlags, bootstrap],
  folder,
  environment: { _HANDLER: Handler, LAMBDA_TASK_ROOT: folder },
})
