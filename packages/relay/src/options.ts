import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { findUser, type ScriptUser } from './executor/user.ts'
import { FatalError } from './exit-codes.ts'
import { messageOf } from './log.ts'
import { proxyFor } from './proxy.ts'

export type Options = {
  server: string | undefined
  stateFolder: string
  token: EnrollmentToken | undefined
  displayName: string
  slots: number
  nodesFile: string | undefined
  workFolder: string | undefined
  runAs: ScriptUser | undefined
  runAsName: string | undefined
  factsFolder: string | undefined
  check: boolean
  command: Command | undefined
  root: string
  allowSudo: boolean
  purge: boolean
}

const commands = ['install', 'uninstall', 'status'] as const
type Command = (typeof commands)[number]

/** An enrollment token, or an enrollment key if `isKey` is true. */
export type EnrollmentToken = { id: string; text: string; isKey: boolean }

/** Parses the command line. Throws `FatalError` if an option is invalid. */
export function parseOptions(args: string[], environment: NodeJS.ProcessEnv): Options | 'help' | 'version' {
  const { values: flags, positionals } = parseFlags(args)
  if (flags.help) return 'help'
  if (flags.version) return 'version'
  const key = readKey(flags['enrollment-key'], environment.PLAT_ENROLLMENT_KEY)
  const token = parseToken(environment.PLAT_ENROLLMENT_TOKEN, false) ?? parseToken(key, true)
  const server = parseServer(flags.server ?? environment.PLAT_RELAY_SERVER)
  checkProxies()
  const command = parseCommand(positionals)
  return {
    server,
    stateFolder: parseStateFolder(flags['state-dir'], token, flags.check || command !== undefined),
    token,
    displayName: parseName(flags.name),
    slots: parseSlots(flags.slots),
    nodesFile: flags.nodes && resolve(flags.nodes),
    workFolder: flags['work-dir'] && resolve(flags['work-dir']),
    factsFolder: flags['facts-dir'] && resolve(flags['facts-dir']),
    check: flags.check,
    runAs: flags['run-as'] && !command ? findUser(flags['run-as']) : undefined,
    runAsName: flags['run-as'],
    command,
    root: resolve(flags.root),
    allowSudo: flags['allow-sudo'],
    purge: flags.purge,
  }
}

function parseCommand(words: string[]): Command | undefined {
  const command = commands.find((name) => name === words[0])
  if (words.length > 1 || (words[0] !== undefined && command === undefined))
    throw new FatalError(
      'usage',
      `${words.join(' ')} is not a command. Use ${commands.join(', ')}, or none. See --help.`,
    )
  return command
}

function parseFlags(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        server: { type: 'string' },
        'state-dir': { type: 'string' },
        name: { type: 'string' },
        slots: { type: 'string', default: '4' },
        nodes: { type: 'string' },
        'work-dir': { type: 'string' },
        'run-as': { type: 'string' },
        'facts-dir': { type: 'string' },
        'enrollment-key': { type: 'string' },
        check: { type: 'boolean', default: false },
        root: { type: 'string', default: '/' },
        'allow-sudo': { type: 'boolean', default: false },
        purge: { type: 'boolean', default: false },
        version: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    throw new FatalError('usage', `${messageOf(error)}. See --help.`)
  }
}

// Other users can see the arguments of a program, so the option names a file and not the key.
function readKey(file: string | undefined, text: string | undefined): string | undefined {
  if (file === undefined) return text
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new FatalError('usage', `--enrollment-key must name a file with the key: ${messageOf(error)}`)
  }
}

function parseToken(text: string | undefined, isKey: boolean): EnrollmentToken | undefined {
  if (!text) return undefined
  const id = /^(\w{1,64})\.[\w.~+/=-]{1,130}$/.exec(text)?.[1]
  if (id === undefined) {
    throw new FatalError(
      'usage',
      isKey
        ? 'PLAT_ENROLLMENT_KEY or --enrollment-key is not an enrollment key. Copy it again, or create another one.'
        : 'PLAT_ENROLLMENT_TOKEN is not an enrollment token. Copy it again, or issue a new one.',
    )
  }
  return { id, text, isKey }
}

function parseServer(text: string | undefined): string | undefined {
  if (!text) return undefined
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text)) {
    throw new FatalError('usage', '--server must be an http or https address, such as https://platform.example.org')
  }
  const { origin, pathname } = new URL(text)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

function checkProxies(): void {
  try {
    for (const protocol of ['http', 'https']) proxyFor(new URL(`${protocol}://platform.invalid`))
  } catch (error) {
    throw new FatalError('usage', messageOf(error))
  }
}

function parseStateFolder(text: string | undefined, token: EnrollmentToken | undefined, isOptional: boolean): string {
  if (text) return resolve(text)
  if (token) return resolve(join('platform-relay', token.id))
  if (isOptional) return resolve('platform-relay')
  throw new FatalError(
    'usage',
    'Set PLAT_ENROLLMENT_TOKEN or PLAT_ENROLLMENT_KEY, or --state-dir to the folder of an enrolled relay. See --help.',
  )
}

function parseName(text: string | undefined): string {
  const name = (text ?? hostname().slice(0, 64)).trim()
  if (!isName(name)) throw new FatalError('usage', '--name must be one line of 1 to 64 characters')
  return name
}

function parseSlots(text: string): number {
  const slots = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (slots < 1 || slots > 100) throw new FatalError('usage', '--slots must be a number from 1 to 100')
  return slots
}

/** Whether the server accepts this text as the name of a relay or a node. */
export function isName(text: string): boolean {
  return text === text.trim() && /^[^\p{Cc}\p{Zl}\p{Zp}]{1,64}$/u.test(text) && text.length <= 64
}
