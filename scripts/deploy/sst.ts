import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import * as z from 'zod'
import { root } from '../source.ts'
import { type Options } from './options.ts'

/** The deployer itself, in the version that package.json pins. */

const outputsFile = join(root, '.sst/outputs.json')

/** What the configuration answers. */
const Outputs = z.object({
  api: z.url(),
  /** Where a browser begins; of the same origin. */
  portal: z.url(),
  /** A command that prints it. */
  initialAdminToken: z.string(),
  /** The topic that alarms are told to. */
  alarms: z.string().optional(),
  /** What the platform's own name has to lead to, where it is kept elsewhere. */
  domainTarget: z.string().optional(),
})
export type Outputs = z.infer<typeof Outputs>

const stay = (): void => undefined

/** Runs it for a stage, and lets it say what it does. Answers its exit code. */
export async function runSst({ action, stage }: Options, region: string): Promise<number> {
  await rm(outputsFile, { force: true })
  const binaries = [join(root, 'node_modules/.bin'), dirname(process.execPath), process.env['PATH']]
  const child = spawn(join(root, 'node_modules/.bin/sst'), [action, '--stage', stage], {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      PATH: binaries.join(delimiter),
      AWS_REGION: region,
      SST_TELEMETRY_DISABLED: '1',
      DO_NOT_TRACK: '1',
    },
  })
  // Whoever interrupts means the deployer, which ends in good order; a terminal tells it by itself.
  const forward = (): void => void child.kill('SIGTERM')
  process.on('SIGTERM', forward).on('SIGINT', stay)
  try {
    const [code] = await once(child, 'close')
    return typeof code === 'number' ? code : 1
  } finally {
    process.off('SIGTERM', forward).off('SIGINT', stay)
  }
}

/** What the deployment that has just ended answers. */
export const readOutputs = async (): Promise<Outputs> => Outputs.parse(JSON.parse(await readFile(outputsFile, 'utf8')))
