import { parseArgs } from 'node:util'
import { CliError, messageOf } from '@platform/cli/exit'
import { resolveFromCaller } from '@platform/local/command-line'
import { stageNameError } from '../../../infra/stage-name.ts'

export type Options =
  | { action: 'help' | 'stop' | 'token' }
  | { action: 'start'; stage: string; port: number; functions?: string }

export const usage = `npm run simulate [-- options]

Deploys the platform on this machine, in the background: emulators with the resources of the real configuration, and the
built functions behind its routes, queues and schedules, restricted to their IAM roles. A start replaces the running
simulator. Then: npm run conformance

  --stage NAME        the stage to simulate; default dev
  --port N            port of the API; default: a free one
  --functions FOLDER  use built functions, such as dist/functions
  --token             print only the initial admin token of the running simulator
  --stop              stop the running simulator
  --help              print this help

Environment: the settings of a deployment (docs/deployment.md). The default limits allow a conformance run.
PLAT_SIMULATOR_DIR is the folder of log and state; default .simulator.
Exit codes: 0 success; 1 failure, nothing is running; 2 usage error.`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const definitions = { stage: text, port: text, functions: text, token: flag, stop: flag, help: flag }

export function parseOptions(args: readonly string[]): Options {
  const { help, stop, token, ...start } = parseValues(args)
  if (help) return { action: 'help' }
  if (stop && token) throw usageError('--stop and --token exclude each other.')
  if (stop || token) {
    const [otherOption] = Object.keys(start)
    if (otherOption !== undefined) throw usageError(`--${otherOption} only applies to a start.`)
    return { action: stop ? 'stop' : 'token' }
  }
  const { stage = 'dev', port = '0', functions } = start
  const error = stageNameError(stage)
  if (error !== undefined) throw usageError(`--stage: "${stage}" ${error}.`)
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw usageError(`--port: "${port}" is not a port.`)
  const folder = functions && { functions: resolveFromCaller(functions) }
  return { action: 'start', stage, port: Number(port), ...folder }
}

const usageError = (message: string, cause?: unknown): CliError =>
  new CliError('usage', `${message}\n\n${usage}`, cause)

function parseValues(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: definitions, strict: true }).values
  } catch (error) {
    throw usageError(messageOf(error), error)
  }
}
