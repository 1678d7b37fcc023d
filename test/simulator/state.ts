import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { lockFile } from '@platform/local/file-lock'
import { isAlive, stampOf } from '@platform/relay/process-group'
import * as z from 'zod'

/** How commands of the same user find the rehearsal that runs. */

export const projectDir = join(import.meta.dirname, '../..')

const State = z.object({
  pid: z.number(),
  /** Tells the process apart from a later one with the same id. */
  stamp: z.string(),
  stage: z.string(),
  /** Absent until the deployment is through. */
  ready: z
    .object({
      /** Where the API is. */
      url: z.string(),
      /** Addresses of this machine that the platform may call, as in PLAT_OUTBOUND_ALLOW. */
      outboundAllow: z.string(),
      secretsUrl: z.string(),
      accessKeyId: z.string(),
      initialAdminTokenSecret: z.string(),
    })
    .optional(),
})
export type State = z.infer<typeof State>

/** The folder that a rehearsal keeps everything in. One runs for each folder. */
export const folderOf = (environment: NodeJS.ProcessEnv): string =>
  resolve(projectDir, environment['PLAT_REHEARSAL_DIR'] || '.rehearsal')

/** What lies in the folder. */
export const placesIn = (folder: string) => ({
  log: join(folder, 'rehearsal.log'),
  lock: join(folder, 'lock.sqlite'),
  state: join(folder, 'state.json'),
  /** What goes with the rehearsal: the built functions, and the images of modules. */
  work: join(folder, 'work'),
})

/** A reader that looks whether the lock is taken holds it for a moment. */
const patienceMs = 2000

/** Takes the folder for this process; undefined when another rehearsal has it. Disposing lets go. */
export function claimFolder(folder: string): Disposable | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return lockFile(placesIn(folder).lock, patienceMs)
}

/** Writes the state of this process, whole or not at all; only its owner can read it. */
export function writeState(folder: string, state: Pick<State, 'stage' | 'ready'>): void {
  const { state: file } = placesIn(folder)
  const content: State = { pid: process.pid, stamp: stampOf(process.pid) ?? '', ...state }
  rmSync(`${file}.draft`, { force: true })
  writeFileSync(`${file}.draft`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.draft`, file)
}

/** What was written last, whether its process runs or not. */
export function readState(folder: string): State | undefined {
  try {
    return State.parse(JSON.parse(readFileSync(placesIn(folder).state, 'utf8')))
  } catch {
    return undefined
  }
}

/** The rehearsal that runs or begins; a state that a killed one has left is none. */
export function findRehearsal(folder: string): State | undefined {
  const state = readState(folder)
  if (state === undefined || !isAlive(state)) return undefined
  // A process that was killed keeps its id until somebody asks how it ended; locks it has no more.
  using free = lockFile(placesIn(folder).lock)
  return free === undefined ? state : undefined
}
