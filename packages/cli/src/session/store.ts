import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { hasCode } from '../exit.ts'

/** The stored session. Only its owner can read the file. */
export interface Session {
  server: string
  username: string
  accessToken: string
  /** Expiry of the access token, in milliseconds since the Unix epoch. */
  expiresAtMs: number
  refreshToken: string
}

export const folder = (): string => join(process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'plat')
const sessionPath = (): string => join(folder(), 'session.json')

/** The stored session, or undefined if there is none or the file is damaged. */
export function readSession(): Session | undefined {
  try {
    const session: unknown = JSON.parse(readFileSync(sessionPath(), 'utf8'))
    return isSession(session) ? session : undefined
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return undefined
    throw error
  }
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
  mkdirSync(folder(), { recursive: true, mode: 0o700 })
  const next = `${sessionPath()}.${process.pid}`
  try {
    writeFileSync(next, `${JSON.stringify(session, null, 2)}\n`, { mode: 0o600, flush: true })
    renameSync(next, sessionPath())
  } finally {
    rmSync(next, { force: true })
  }
}

export const removeSession = (): void => rmSync(sessionPath(), { force: true })
