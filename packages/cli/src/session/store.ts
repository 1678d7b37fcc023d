import { chmodSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { defaultContext, isContextName, parseContextName, requestedContextName } from '../context.ts'
import { CliError, hasCode, messageOf } from '../exit.ts'
import { makeFolder } from '@platform/oci/make-folder'

/**
 * A server, and the session of a user there unless the user has signed out. Each context has a file, so that the tokens
 * of a context are stored with the server that they belong to, and contexts can change at the same time.
 */
export interface Context {
  server: string
  username?: string
  session?: Session
}

/** A stored session. Only the owner of the file can read it. */
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

const configFolder = (): string => join(process.env['XDG_CONFIG_HOME'] || join(homeFolder(), '.config'), 'plat')

function homeFolder(): string {
  try {
    const home = homedir()
    if (home !== '') return home
  } catch (error) {
    if (!hasCode(error, 'ERR_SYSTEM_ERROR')) throw error
  }
  throw unusableFolderError('This user has no home folder.')
}

const unusableFolderError = (reason: string, cause?: unknown): CliError =>
  new CliError('notSignedIn', `${reason} Set XDG_CONFIG_HOME to a writable folder, or use PLAT_TOKEN.`, cause)

/** Runs work on files of the configuration folder. Throws `CliError` with the path if the folder cannot be used. */
export function inFolder<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unusableFolderError(`Cannot use the folder ${configFolder()}: ${messageOf(error)}.`, error)
  }
}

const contextsFolder = (): string => join(configFolder(), 'contexts')
const currentContextPath = (): string => join(configFolder(), 'current-context')
const earlierSessionPath = (): string => join(configFolder(), 'session.json')
const pathOf = (name: string): string => join(contextsFolder(), `${name}.json`)

export const lockPathOf = (name: string): string => join(contextsFolder(), `${name}.lock`)

/** Returns the name of the requested context or, without a request, of the current context. */
export const selectedContextName = (): string => requestedContextName() ?? currentContextName()

/** Returns the name of the current context, or `default` if none is stored. */
export const currentContextName = (): string => {
  const name = inFolder(() => contentOf(currentContextPath()))?.trim()
  return name ? parseContextName(name) : defaultContext
}

export const setCurrentContextName = (name: string): void =>
  inFolder(() => replaceFile(currentContextPath(), `${name}\n`))

export const contextNames = (): string[] =>
  inFolder(() => {
    adoptSession()
    try {
      const files = readdirSync(contextsFolder()).filter((file) => file.endsWith('.json'))
      return files
        .map((file) => file.slice(0, -'.json'.length))
        .filter(isContextName)
        .toSorted()
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return []
      throw error
    }
  })

/** Reads a context. Returns undefined if the context does not exist or its file is damaged. */
export function readContext(name: string): Context | undefined {
  return inFolder(() => {
    adoptSession()
    try {
      const earlierContent = name === defaultContext ? contentOf(earlierSessionPath()) : undefined
      const storedContext: unknown = JSON.parse(contentOf(pathOf(name)) ?? earlierContent ?? 'null')
      if (!isContext(storedContext)) return undefined
      const { server, username } = storedContext
      return {
        server,
        ...(username !== undefined && { username }),
        ...(isSession(storedContext) && { session: storedContext }),
      }
    } catch (error) {
      if (error instanceof SyntaxError) return undefined
      throw error
    }
  })
}

/** Writes a context atomically, because other processes may read it at the same time. */
export const writeContext = (name: string, { server, username, session }: Context): void =>
  inFolder(() =>
    replaceFile(pathOf(name), `${JSON.stringify(session ?? { server, ...(username && { username }) }, null, 2)}\n`),
  )

export const removeContext = (name: string): void =>
  inFolder(() => {
    if (currentContextName() === name) rmSync(currentContextPath(), { force: true })
    rmSync(pathOf(name), { force: true })
  })

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function replaceFile(path: string, content: string): void {
  makeFolder(contextsFolder())
  const draftPath = `${path}.${process.pid}`
  try {
    writeFileSync(draftPath, content, { mode: 0o600, flush: true })
    renameSync(draftPath, path)
  } finally {
    rmSync(draftPath, { force: true })
  }
}

// Converts the session file of an earlier version to a context. Never replaces an existing context.
function adoptSession(): void {
  const stats = statSync(earlierSessionPath(), { throwIfNoEntry: false })
  if (stats === undefined) return
  for (let count = 1; ; count++) {
    const adoptedPath = pathOf(count === 1 ? defaultContext : `${defaultContext}-${count}`)
    try {
      makeFolder(contextsFolder())
      chmodSync(earlierSessionPath(), 0o600)
      linkSync(earlierSessionPath(), adoptedPath)
    } catch (error) {
      // In a read-only folder, the file is read in place.
      if (['ENOENT', 'EACCES', 'EPERM', 'EROFS'].some((code) => hasCode(error, code))) return
      if (!hasCode(error, 'EEXIST')) throw error
      if (statSync(adoptedPath, { throwIfNoEntry: false })?.ino !== stats.ino) continue
    }
    return rmSync(earlierSessionPath(), { force: true })
  }
}

const isContext = (value: unknown): value is Context => {
  if (typeof value !== 'object' || value === null || !('server' in value)) return false
  const hasName = !('username' in value) || typeof value.username === 'string'
  return hasName && typeof value.server === 'string' && /^https?:\/\//.test(value.server) && URL.canParse(value.server)
}

const textFields = ['server', 'username', 'accessToken', 'refreshToken'] as const
const isSession = (value: object): value is Session => {
  const fields = new Map(Object.entries(value))
  return (
    textFields.every((name) => typeof fields.get(name) === 'string') && typeof fields.get('expiresAtMs') === 'number'
  )
}
