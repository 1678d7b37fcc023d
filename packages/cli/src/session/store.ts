import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { CliError, hasCode, messageOf } from '../exit.ts'
import { makeFolder } from '@platform/oci/make-folder'

/** The stored session. Only its owner can read the file. */
export interface Session {
  server: string
  username: string
  accessToken: string
  /** Expiry of the access token, in milliseconds since the Unix epoch. */
  expiresAtMs: number
  refreshToken: string
  /** The idempotency key of a renewal that has no response yet. */
  renewalKey?: string
}

export const folder = (): string => join(process.env['XDG_CONFIG_HOME'] || join(homeFolder(), '.config'), 'plat')

function homeFolder(): string {
  try {
    const home = homedir()
    if (home !== '') return home
  } catch (error) {
    if (!hasCode(error, 'ERR_SYSTEM_ERROR')) throw error
  }
  throw unusable('This user has no home folder.')
}

const unusable = (reason: string, cause?: unknown): CliError =>
  new CliError('notSignedIn', `${reason} Set XDG_CONFIG_HOME to a writable folder, or use PLAT_TOKEN.`, cause)

/** Runs work on files of the configuration folder. Throws `CliError` with the path if the folder cannot be used. */
export function inFolder<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unusable(`Cannot use the folder ${folder()}: ${messageOf(error)}.`, error)
  }
}

const sessionPath = (): string => join(folder(), 'session.json')

/** The stored session, or undefined if there is none or the file is damaged. */
export function readSession(): Session | undefined {
  return inFolder(() => {
    try {
      const session: unknown = JSON.parse(readFileSync(sessionPath(), 'utf8'))
      return isSession(session) ? session : undefined
    } catch (error) {
      if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return undefined
      throw error
    }
  })
}

const textFields = ['server', 'username', 'accessToken', 'refreshToken'] as const
const isSession = (value: unknown): value is Session => {
  if (typeof value !== 'object' || value === null) return false
  const fields = new Map(Object.entries(value))
  return (
    textFields.every((name) => typeof fields.get(name) === 'string') && typeof fields.get('expiresAtMs') === 'number'
  )
}

/** Writes the session atomically, because other processes may read it at the same time. */
export function writeSession(session: Session): void {
  inFolder(() => {
    makeFolder(folder())
    const next = `${sessionPath()}.${process.pid}`
    try {
      writeFileSync(next, `${JSON.stringify(session, null, 2)}\n`, { mode: 0o600, flush: true })
      renameSync(next, sessionPath())
    } finally {
      rmSync(next, { force: true })
    }
  })
}

export const removeSession = (): void => inFolder(() => rmSync(sessionPath(), { force: true }))
