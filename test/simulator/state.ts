import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { lockFile } from '@platform/local/file-lock'
import { isAlive, stampOf } from '@platform/relay/process-group'
import * as z from 'zod'

export const projectDir = join(import.meta.dirname, '../..')

const State = z.object({
  pid: z.number(),
  stamp: z.string(),
  stage: z.string(),
  ready: z
    .object({
      url: z.string(),
      webhookAllow: z.string(),
      secretsUrl: z.string(),
      accessKeyId: z.string(),
      initialAdminTokenSecret: z.string(),
    })
    .optional(),
})
export type State = z.infer<typeof State>

export const folderOf = (environment: NodeJS.ProcessEnv): string =>
  resolve(projectDir, environment['PLAT_SIMULATOR_DIR'] || '.simulator')

export const placesIn = (folder: string) => ({
  log: join(folder, 'simulator.log'),
  lock: join(folder, 'lock.sqlite'),
  state: join(folder, 'state.json'),
  /** Built functions and module images, removed with the simulator. */
  work: join(folder, 'work'),
})

/** `findSimulator` in another process may hold the lock briefly. */
const lockTimeoutMs = 2000

export function claimFolder(folder: string): Disposable | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return lockFile(placesIn(folder).lock, lockTimeoutMs)
}

export function writeState(folder: string, state: Pick<State, 'stage' | 'ready'>): void {
  const { state: file } = placesIn(folder)
  const content: State = { pid: process.pid, stamp: stampOf(process.pid) ?? '', ...state }
  rmSync(`${file}.draft`, { force: true })
  writeFileSync(`${file}.draft`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.draft`, file)
}

export function readState(folder: string): State | undefined {
  try {
    return State.parse(JSON.parse(readFileSync(placesIn(folder).state, 'utf8')))
  } catch {
    return undefined
  }
}

export function findSimulator(folder: string): State | undefined {
  const state = readState(folder)
  if (state === undefined || !isAlive(state)) return undefined
  // A killed process keeps its id until it is reaped, but holds no lock.
  using lock = lockFile(placesIn(folder).lock)
  return lock === undefined ? state : undefined
}
