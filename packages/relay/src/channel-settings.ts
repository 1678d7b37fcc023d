import type { Channel } from '@platform/contract/relay'
import { isJsonObject } from './json.ts'

/** Parses the settings of a control channel and resolves its address. Returns the problem if a setting is invalid. */
export function parseChannel(value: unknown, server: string): Channel | string {
  if (!isJsonObject(value)) return 'it is not an object'
  const { url, clientId, topic, username, keepAliveSeconds } = value
  if (!isText(url, 1, 500) || !isText(clientId, 1, 128) || !isText(topic, 1, 200) || !isText(username, 0, 500)) {
    return 'a member is missing or too long'
  }
  if (!Number.isInteger(keepAliveSeconds) || Number(keepAliveSeconds) < 5 || Number(keepAliveSeconds) > 1200) {
    return 'keepAliveSeconds is not between 5 and 1200'
  }
  const address = absoluteUrlOf(url, server)
  if (!URL.canParse(address)) return 'its address is invalid'
  const { protocol, username: user, password, hash } = new URL(address)
  if (protocol !== 'wss:' && protocol !== 'ws:') return 'its address is not wss'
  if (protocol === 'ws:' && server.startsWith('https:'))
    return 'its address is not wss, although the platform uses https'
  if (user || password || hash) return 'its address has credentials or a fragment'
  return { url: address, clientId, topic, username, keepAliveSeconds: Number(keepAliveSeconds) }
}

function isText(value: unknown, minLength: number, maxLength: number): value is string {
  return typeof value === 'string' && value.length >= minLength && value.length <= maxLength
}

function absoluteUrlOf(url: string, server: string): string {
  return /^\/(?!\/)/.test(url) ? `${server.replace(/^http/i, 'ws')}${url}` : url
}
