import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { CliError, messageOf } from '@platform/cli/exit'
import { stageNameError } from '../../../infra/stage-name.ts'

/** Options of `npm run simulate`. */
export type Options =
  | { action: 'help' | 'stop' | 'token' }
  | { action: 'start'; stage: string; port: number; functions?: string }

export const usage = `npm run simulate [-- options]

Deploys the platform on this machine, in the background: the resources of the real configuration in stand-ins, the built
functions behind its routes, queues and clocks, each with no more than its role allows. One runs at a time; another one
takes its place. Then: npm run conformance

  --stage NAME        the stage to simulate; default dev
  --port N            port of the API; default: one that is free
  --functions FOLDER  functions that are built already, such as dist/functions
  --token             print the initial admin token of the simulator that runs, and nothing else
  --stop              end the simulator that runs
  --help              this

Environment: the settings of a deployment (docs/deployment.md). Where one is not set, a simulator has limits with room for a
conformance run. PLAT_SIMULATOR_DIR is the folder of its log and its state; default .simulator.
Exit codes: 0 done; 1 it failed, and nothing runs; 2 the command is wrong.`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const known = { stage: text, port: text, functions: text, token: flag, stop: flag, help: flag }

/** Parses the command line. Throws `CliError`. */
export function parseOptions(args: readonly string[]): Options {
  const { help, stop, token, ...start } = valuesOf(args)
  if (help) return { action: 'help' }
  if (stop && token) throw bad('--stop and --token exclude each other.')
  if (stop || token) {
    const [other] = Object.keys(start)
    if (other !== undefined) throw bad(`--${other} only applies to a start.`)
    return { action: stop ? 'stop' : 'token' }
  }
  const { stage = 'dev', port = '0', functions } = start
  const fault = stageNameError(stage)
  if (fault !== undefined) throw bad(`--stage: "${stage}" ${fault}.`)
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw bad(`--port: "${port}" is not a port.`)
  // npm runs scripts in the project folder; INIT_CWD is the folder of the caller.
  const folder = functions && { functions: resolve(process.env['INIT_CWD'] ?? '.', functions) }
  return { action: 'start', stage, port: Number(port), ...folder }
}

const bad = (what: string, cause?: unknown): CliError => new CliError('usage', `${what}\n\n${usage}`, cause)

function valuesOf(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: known, strict: true }).values
  } catch (error) {
    throw bad(messageOf(error), error)
  }
}
