import { readFileSync } from 'node:fs'
import { FatalError } from './exit-codes.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from './json.ts'
import { messageOf } from './log.ts'
import { isName } from './options.ts'

export type LocalNode = { name: string; executor: 'local' }

/** A node that the system's `ssh` reaches without a prompt. */
export type SshNode = {
  name: string
  executor: 'ssh'
  host: string
  user?: string
  port?: number
  identityFile?: string
  knownHostsFile?: string
  /** Folder on the node below which scripts run. */
  workDir?: string
}

export type NodeConfig = LocalNode | SshNode

const maxNodes = 2000
const sshRules: Record<string, (value: unknown) => boolean> = {
  // ssh would read a value that starts with a dash as an option.
  host: (value) => isNonEmptyString(value) && /^[\w[][\w.:%[\]-]{0,254}$/.test(value),
  user: (value) => isNonEmptyString(value) && /^\w[\w.@-]{0,63}$/.test(value),
  port: (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535,
  identityFile: isNonEmptyString,
  workDir: (value) => isNonEmptyString(value) && /^\/[^\p{Cc}]*$/u.test(value),
  knownHostsFile: (value) => isNonEmptyString(value) && /^[^"\p{Cc}]+$/u.test(value),
}

/** Reads the nodes file. Throws `FatalError` if the file or a setting is invalid. */
export function readNodes(path: string): NodeConfig[] {
  const nodes = parseJsonObject(readText(path))?.nodes
  if (!Array.isArray(nodes) || nodes.length === 0 || nodes.length > maxNodes) {
    throw new FatalError('usage', `${path} must contain {"nodes": [...]} with 1 to ${maxNodes} nodes. See --help.`)
  }
  const parsed = nodes.map((node: unknown, index) => parseNode(node, `node ${index + 1} of ${path}`))
  const names = new Set(parsed.map((node) => node.name))
  if (names.size < parsed.length) throw new FatalError('usage', `${path} has two nodes with the same name.`)
  return parsed
}

function parseNode(value: unknown, location: string): NodeConfig {
  if (!isJsonObject(value)) throw new FatalError('usage', `${location} is not an object.`)
  const { name, executor } = value
  if (!isNonEmptyString(name) || !isName(name))
    throw new FatalError('usage', `${location} needs a name of 1 to 64 characters.`)
  if (executor === 'local') return { name, executor }
  if (executor !== 'ssh') throw new FatalError('usage', `${location} needs the executor "local" or "ssh".`)
  return parseSshNode(value, name, location)
}

function parseSshNode(value: JsonObject, name: string, location: string): SshNode {
  const { name: _name, executor: _executor, ...settings } = value
  if (isSshSettings(settings)) return { ...settings, name, executor: 'ssh' }
  throw new FatalError('usage', `${location}: ${findInvalidSetting(settings)} is missing, invalid or unknown.`)
}

function isSshSettings(settings: JsonObject): settings is Omit<SshNode, 'name' | 'executor'> {
  return findInvalidSetting(settings) === undefined
}

function findInvalidSetting(settings: JsonObject): string | undefined {
  const invalidEntry = Object.entries({ host: undefined, ...settings }).find(([key, value]) => !sshRules[key]?.(value))
  return invalidEntry?.[0]
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new FatalError('usage', `The nodes file cannot be read: ${messageOf(error)}`)
  }
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0
}
