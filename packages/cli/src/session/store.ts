import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { hasCode } from '../exit.ts'

/** What `plat login` keeps: who is signed in where. Readable by its owner alone. */
export interface Session {
  server: string
  username: string
  accessToken: string
  /** When the access token expires, in milliseconds since 1970. */
  expiresAtMs: number
  refreshToken: string
}

/** The folder of the command line's own files. */
export const folder = (): string => join(process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'plat')
const file = (): string => join(folder(), 'session.json')

/** The stored session; undefined where nobody is signed in, or the file is damaged. */
export function readSession(): Session | undefined {
  try {
    const session: unknown = JSON.parse(readFileSync(file(), 'utf8'))
    return isSession(session) ? session : undefined
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

const texts = ['server', 'username', 'accessToken', 'refreshToken'] as const
const isSession = (value: unknown): value is Session => {
  if (typeof value !== 'object' || value === null) return false
  const fields = new Map(Object.entries(value))
  return texts.every((name) => typeof fields.get(name) === 'string') && typeof fields.get('expiresAtMs') === 'number'
}

/** Stores the session whole or not at all, whatever ends the program meanwhile. */
export function writeSession(session: Session): void {
  mkdirSync(folder(), { recursive: true, mode: 0o700 })
  const next = `${file()}.${process.pid}`
  try {
    writeFileSync(next, `${JSON.stringify(session, null, 2)}\n`, { mode: 0o600, flush: true })
    renameSync(next, file())
  } finally {
    rmSync(next, { force: true })
  }
}

/** Forgets the session. */
export const removeSession = (): void => rmSync(file(), { force: true })
