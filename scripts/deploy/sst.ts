import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import * as z from 'zod'
import { root } from '../source.ts'
import type { Options } from './options.ts'

const outputsFile = join(root, '.sst/outputs.json')

/** Outputs of sst.config.ts. */
const Outputs = z.object({
  api: z.url(),
  portal: z.url(),
  /** Command that prints the initial admin token. */
  initialAdminToken: z.string(),
  /** ARN of the alarm topic. */
  alarms: z.string().optional(),
  /** CNAME target of a domain whose DNS is managed elsewhere. */
  domainTarget: z.string().optional(),
  /** CNAME target of the front's domain, if its DNS is managed elsewhere. */
  frontTarget: z.string().optional(),
})
export type Outputs = z.infer<typeof Outputs>

const ignoreSignal = (): void => undefined

/** Runs SST for a stage on this terminal. Returns its exit code, or 1 if a signal ended it. */
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
  // A terminal sends an interrupt also to SST, which then stops cleanly.
  const forwardSignal = (): void => void child.kill('SIGTERM')
  process.on('SIGTERM', forwardSignal).on('SIGINT', ignoreSignal)
  try {
    const [code] = await once(child, 'close')
    return typeof code === 'number' ? code : 1
  } finally {
    process.off('SIGTERM', forwardSignal).off('SIGINT', ignoreSignal)
  }
}

export const readOutputs = async (): Promise<Outputs> => Outputs.parse(JSON.parse(await readFile(outputsFile, 'utf8')))
