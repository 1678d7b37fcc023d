import * as http from 'node:http'
import * as https from 'node:https'
import { BlockList, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'

const connectLimitMs = 15_000
const loopbackPattern = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/
const defaultPorts: Record<string, string> = { 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443' }

/**
 * Thrown if the setting of a proxy is invalid. The message names the setting and the correction, but no credentials.
 */
export class ProxySettingError extends Error {}

/** Thrown if a proxy does not open a connection. The message states the next step. */
export class ProxyError extends Error {}

type Environment = Record<string, string | undefined>

/**
 * Returns the proxy for an address, if any, from `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. Lower-case names take
 * precedence. Loopback addresses use no proxy. Throws `ProxySettingError`.
 */
export function proxyFor(url: URL, environment: Environment = process.env): URL | undefined {
  const name = isSecure(url) ? 'https_proxy' : 'http_proxy'
  const variable = [name, name.toUpperCase()].find((key) => environment[key]?.trim())
  if (variable === undefined || loopbackPattern.test(url.hostname)) return undefined
  const proxy = parseProxy(variable, environment[variable]!.trim())
  return isExempt(url, environment['no_proxy'] || environment['NO_PROXY'] || '') ? undefined : proxy
}

const isSecure = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'wss:'

function parseProxy(name: string, text: string): URL {
  const address = text.includes('://') ? text : `http://${text}`
  const url = URL.canParse(address) ? new URL(address) : undefined
  // An unescaped `/`, `?` or `#` in a password ends the host part early.
  const isAddress = url !== undefined && url.hostname !== '' && /^\/?$/.test(url.pathname + url.search + url.hash)
  if (!isAddress) {
    throw new ProxySettingError(
      `${name} is not the address of a proxy. Use http://user:password@host:port, with special characters in the user name and password percent-encoded, such as %40 for @.`,
    )
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ProxySettingError(
      `${name} names a proxy with the protocol ${url.protocol.slice(0, -1)}, which is not supported. Use an http or https proxy.`,
    )
  }
  try {
    credentialsOf(url)
  } catch {
    throw new ProxySettingError(
      `${name} has a % in its user name or password that is not followed by two hexadecimal digits. Write %25 for it.`,
    )
  }
  return url
}

const credentialsOf = ({ username, password }: URL): string =>
  `${decodeURIComponent(username)}:${decodeURIComponent(password)}`

// An entry of NO_PROXY is `*`, a name or an address, each with an optional port, or a block of addresses.
function isExempt(url: URL, noProxy: string): boolean {
  const host = url.hostname.replaceAll(/^\[|\]$|\.$/g, '')
  const entries = noProxy.toLowerCase().split(/[\s,]+/)
  return entries.some((entry) => {
    const { name, port } = partsOf(entry)
    if (name === '' || (port !== undefined && port !== (url.port || defaultPorts[url.protocol]))) return false
    return name === '*' || (isIP(host) === 0 ? isWithinDomain(host, name) : isInBlock(host, name))
  })
}

function partsOf(entry: string): { name: string; port: string | undefined } {
  // An IPv6 address has a port only after brackets.
  const [, name, port] = /^\[([^\]]*)\](?::(\d+))?$/.exec(entry) ?? /^([^:]*)(?::(\d+))?$/.exec(entry) ?? []
  return { name: name ?? entry, port }
}

function isWithinDomain(host: string, domain: string): boolean {
  const name = domain.replaceAll(/^\*?\.|\.$/g, '')
  return host === name || (name !== '' && host.endsWith(`.${name}`))
}

function isInBlock(address: string, text: string): boolean {
  const [network = '', prefix] = text.split('/')
  const bits = isIP(network) === 6 ? 128 : 32
  const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  if (isIP(network) === 0 || !(length <= bits)) return false
  const block = new BlockList()
  block.addSubnet(network, length, familyOf(network))
  return block.check(address, familyOf(address))
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Returns the address of a proxy without credentials, for messages. */
export function proxyName({ protocol, host }: URL): string {
  return `${protocol}//${host}`
}

const agents = new Map<string, http.Agent>()

/** Returns an agent that connects through the proxy, if any. It reuses connections unless `keepAlive` is false. */
export function agentFor(url: URL, { keepAlive = true } = {}): http.Agent {
  const proxy = proxyFor(url)
  const key = `${isSecure(url)} ${keepAlive} ${proxy?.href}`
  const agent = agents.get(key) ?? newAgent(isSecure(url), keepAlive, proxy)
  agents.set(key, agent)
  return agent
}

type Callback = (error: Error | null, socket?: Socket) => void

function newAgent(usesTls: boolean, keepAlive: boolean, proxy: URL | undefined): http.Agent {
  const agent = new (usesTls ? https : http).Agent({ keepAlive })
  if (proxy === undefined) return agent
  const createConnection = (options: ConnectionOptions & { host: string; port: number }, callback: Callback) => {
    const host = options.host.includes(':') ? `[${options.host}]` : options.host
    openTunnel(proxy, `${host}:${options.port}`, (error, socket) => {
      if (socket === undefined) callback(error)
      else callback(null, usesTls ? connectTls({ ...options, socket }) : socket)
    })
  }
  return Object.assign(agent, { createConnection })
}

function openTunnel(proxy: URL, target: string, callback: Callback): void {
  const authorization = `Basic ${Buffer.from(credentialsOf(proxy)).toString('base64')}`
  const name = proxyName(proxy)
  const request = (proxy.protocol === 'https:' ? https : http).request({
    hostname: proxy.hostname.replaceAll(/^\[|\]$/g, ''),
    port: proxy.port || defaultPorts[proxy.protocol],
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...(proxy.username && { 'proxy-authorization': authorization }) },
    agent: false,
    timeout: connectLimitMs,
  })
  const fail = (message: string) => callback(new ProxyError(message))
  request.once('connect', ({ statusCode }, socket) => {
    if (statusCode !== undefined && statusCode >= 200 && statusCode < 300) return callback(null, socket.setTimeout(0))
    socket.destroy()
    fail(`the proxy ${name} does not connect to ${target} (status ${statusCode}); ${adviceOf(statusCode)}`)
  })
  request.once('timeout', () => request.destroy(new Error('no response')))
  request.once('error', (error: NodeJS.ErrnoException) =>
    fail(`the proxy ${name} is not available (${error.code ?? error.message}); check its address and that it runs`),
  )
  request.end()
}

function adviceOf(status: number | undefined): string {
  if (status === 407 || status === 401) return 'set its user name and password, as in http://user:password@host:port'
  if (status === 403) return 'let it allow CONNECT to this host and port, or list the host in NO_PROXY'
  return 'check that it is a proxy and can reach this host'
}
