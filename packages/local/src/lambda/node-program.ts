import { fileURLToPath } from 'node:url'
import type { Program } from './code.ts'
import type { Settings } from './settings.ts'

const bootstrap = fileURLToPath(new URL('bootstrap.ts', import.meta.url))

/** What runs a folder as a function of Node.js; its handler is `<file>.<export>`. */
export const nodeProgram = (folder: string, { Handler = '' }: Settings): Program => ({
  arguments: [bootstrap],
  folder,
  environment: { _HANDLER: Handler, LAMBDA_TASK_ROOT: folder },
})
