import * as http from 'node:http'
import * as https from 'node:https'
import type { Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'

const connectLimitMs = 15_000
const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/
const ports: Record<string, string> = { 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443' }

/**
 * The proxy for an address, from `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. Connections to this machine use none.
 * Throws `TypeError` if the variable is not an address.
 */
export function proxyFor(url: URL, environment: NodeJS.ProcessEnv = process.env): URL | undefined {
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:'
  const proxy = variable(environment, isSecure ? 'https_proxy' : 'http_proxy')
  if (!proxy || loopback.test(url.hostname) || isExempt(url, variable(environment, 'no_proxy'))) return undefined
  return new URL(proxy.includes('://') ? proxy : `http://${proxy}`)
}

function variable(environment: NodeJS.ProcessEnv, name: string): string {
  return environment[name] || environment[name.toUpperCase()] || ''
}

// Each entry is `*`, or a host with an optional port. A name includes its subdomains, with or without a leading dot.
function isExempt({ hostname, port, protocol }: URL, noProxy: string): boolean {
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const [, host = '', entryPort] = /^(\[[^\]]*\]|[^:]*|.*)(?::(\d+))?$/.exec(entry) ?? []
      if (entryPort !== undefined && entryPort !== (port || ports[protocol])) return false
      const name = host.replace(/^\*?\./, '')
      return host === '*' || hostname === name || hostname.endsWith(`.${name}`)
    })
}

/** The proxy without its credentials, for messages. */
export function proxyName({ protocol, host }: URL): string {
  return `${protocol}//${host}`
}

const agents = new Map<string, http.Agent>()

/** Keeps connections open for later requests, through the proxy if there is one. */
export function agentFor(url: URL): http.Agent {
  const proxy = proxyFor(url)
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:'
  const key = `${isSecure} ${proxy?.href}`
  const agent = agents.get(key) ?? newAgent(isSecure, proxy)
  agents.set(key, agent)
  return agent
}

type Callback = (error: Error | null, socket?: Socket) => void

function newAgent(isSecure: boolean, proxy: URL | undefined): http.Agent {
  const agent = new (isSecure ? https : http).Agent({ keepAlive: true })
  if (proxy === undefined) return agent
  const createConnection = (options: ConnectionOptions & { host: string; port: number }, callback: Callback) => {
    const host = options.host.includes(':') ? `[${options.host}]` : options.host
    openTunnel(proxy, `${host}:${options.port}`, (error, socket) => {
      if (socket === undefined) callback(error)
      else callback(null, isSecure ? connectTls({ ...options, socket }) : socket)
    })
  }
  return Object.assign(agent, { createConnection })
}

function openTunnel(proxy: URL, target: string, callback: Callback): void {
  const credentials = [proxy.username, proxy.password].map(decodeURIComponent).join(':')
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  const name = proxyName(proxy)
  const request = (proxy.protocol === 'https:' ? https : http).request({
    hostname: proxy.hostname.replaceAll(/^\[|\]$/g, ''),
    port: proxy.port || ports[proxy.protocol],
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...(proxy.username && { 'proxy-authorization': authorization }) },
    agent: false,
    timeout: connectLimitMs,
  })
  request.once('connect', ({ statusCode }, socket) => {
    if (statusCode === 200) return callback(null, socket.setTimeout(0))
    socket.destroy()
    callback(new Error(`the proxy ${name} does not connect to ${target} (status ${statusCode})`))
  })
  request.once('timeout', () => request.destroy(new Error('no response')))
  request.once('error', (error: NodeJS.ErrnoException) =>
    callback(new Error(`the proxy ${name} is not available (${error.code ?? error.message})`)),
  )
  request.end()
}
