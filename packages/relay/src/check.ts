import { accessSync } from 'node:fs'
import { tryOpen } from './channel.ts'
import { Client } from './client.ts'
import { now, ServerClock } from './clock.ts'
import { exitCodes, FatalError } from './exit-codes.ts'
import { codeOf } from './http.ts'
import { type Identity, keyFor, loadIdentity } from './identity.ts'
import { parseJsonObject } from './json.ts'
import { messageOf } from './log.ts'
import { ModeFile } from './mode.ts'
import type { Options } from './options.ts'
import { type Failure, probe, type Response } from './probe.ts'
import { proxyFor, proxyName } from './proxy.ts'

const maxClockErrorMs = 300_000

/**
 * Prints the state of each hop to the platform, up to the first that fails. Returns the exit code of the failed hop, or
 * 0.
 */
export async function check({ server, stateFolder }: Options): Promise<number> {
  const identity = readIdentity(stateFolder)
  const address = server ?? identity?.server
  if (address === undefined)
    throw new FatalError('usage', 'Set --server, or --state-dir to the folder of an enrolled relay.')
  try {
    const clock = await checkPlatform(address)
    if (identity === undefined) print('Relay', `not checked, because ${stateFolder} contains no enrolled relay.`)
    else {
      await checkRelay({ ...identity, server: address }, stateFolder, clock)
      await checkChannel(stateFolder)
    }
    return exitCodes.stopped
  } catch (error) {
    if (!(error instanceof HopError)) throw error
    print(error.hop, `FAILED. ${error.message}`)
    return error.exitCode
  }
}

const exitCodeByHop = {
  DNS: exitCodes.checkDns,
  Proxy: exitCodes.checkProxy,
  Connection: exitCodes.checkConnection,
  TLS: exitCodes.checkTls,
  Platform: exitCodes.checkPlatform,
  Time: exitCodes.checkTime,
  Relay: exitCodes.checkRelay,
  Channel: exitCodes.checkChannel,
}

class HopError extends Error {
  readonly hop: keyof typeof exitCodeByHop
  readonly exitCode: number

  constructor(hop: keyof typeof exitCodeByHop, message: string, exitCode: number = exitCodeByHop[hop]) {
    super(message)
    this.hop = hop
    this.exitCode = exitCode
  }
}

function print(hop: string, text: string): void {
  process.stdout.write(`${hop}: ${text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')}\n`)
}

function readIdentity(stateFolder: string): Identity | undefined {
  try {
    return loadIdentity(stateFolder)
  } catch (error) {
    if (error instanceof FatalError) throw error
    throw new FatalError('stateUnusable', `${messageOf(error)}. Run the check as the user of the relay.`)
  }
}

// Checks the hops from DNS to Time. Returns a clock with the time of the platform.
async function checkPlatform(address: string): Promise<ServerClock> {
  const url = new URL(`${address}/health/live`)
  const proxy = proxyFor(url)
  const response = await probe(url)
  if ('cause' in response) throw new HopError(response.hop, adviceOf(response, url))
  if (proxy) print('Proxy', `ok, ${proxyName(proxy)}`)
  else print('DNS', `ok, ${url.hostname} has the address ${response.address}; no proxy`)
  checkTls(url, response)
  requirePlatform(address, response)
  print('Platform', `ok, ${address} responds (${response.durationMs} ms)`)
  checkTime(response)
  const clock = new ServerClock()
  clock.observe(response.headers.date)
  return clock
}

function adviceOf({ hop, cause }: Failure, { hostname, host, protocol }: URL): string {
  if (hop === 'DNS')
    return `The name ${hostname} cannot be resolved (${cause}). Check --server and the name servers of this machine. If a proxy is the only way out, set HTTPS_PROXY.`
  if (hop === 'Proxy') return `${cause}.`.replace(/^./, (letter) => letter.toUpperCase())
  if (hop === 'Connection')
    return `${host} does not accept a connection (${cause}). Check --server, and let the firewall allow outbound connections to it. If a proxy is the only way out, set HTTPS_PROXY.`
  if (hop === 'TLS')
    return `${host} does not open a TLS connection (${cause}). Check the protocol and port of --server, and that no firewall ends the connection.`
  return `${protocol}//${host} does not respond (${cause}). Try again. If the problem persists, contact the operator of the platform.`
}

function checkTls({ host, hostname }: URL, { tls, headers }: Response): void {
  if (tls === undefined) return
  const { certificate, problem } = tls
  const issuer = [certificate.issuer?.O, certificate.issuer?.CN].filter(Boolean).join(', ')
  if (problem === undefined) return print('TLS', `ok, the certificate is issued by ${issuer}`)
  if (problem === 'CERT_HAS_EXPIRED' || problem === 'CERT_NOT_YET_VALID') {
    checkTime({ headers })
    throw new HopError(
      'TLS',
      `The certificate of ${host} is valid from ${certificate.valid_from} to ${certificate.valid_to}, and it is ${new Date(now()).toISOString()}. Renew the certificate, or correct the clock.`,
    )
  }
  if (problem === 'ERR_TLS_CERT_ALTNAME_INVALID')
    throw new HopError(
      'TLS',
      `The certificate belongs to ${certificate.subjectaltname ?? 'no name'}, not to ${hostname}. Check --server.`,
    )
  throw new HopError(
    'TLS',
    `The certificate is issued by ${issuer}, which this machine does not trust (${problem}). ${authorityAdvice()}`,
  )
}

function authorityAdvice(path = process.env['NODE_EXTRA_CA_CERTS']): string {
  if (!path)
    return 'If this is your own authority, or that of a proxy that inspects TLS, set NODE_EXTRA_CA_CERTS to the PEM file of its certificate.'
  try {
    accessSync(path)
    return `The file in NODE_EXTRA_CA_CERTS, ${path}, does not contain its certificate in PEM format.`
  } catch (error) {
    return `The file in NODE_EXTRA_CA_CERTS cannot be read: ${messageOf(error)}.`
  }
}

function requirePlatform(address: string, { status, headers, body }: Response): void {
  if (status === 200 && parseJsonObject(body)?.status === 'ok') return
  if (status >= 500)
    throw new HopError(
      'Platform',
      `${address} is not available (status ${status}). A running relay retries automatically. If the problem persists, contact the operator of the platform.`,
    )
  const { location } = headers
  if (location) throw new HopError('Platform', `${address} redirects to ${location}. Use that address as --server.`)
  throw new HopError(
    'Platform',
    `${address} responds (status ${status}), but not like the platform. Check --server, and whether this network requires a sign-in.`,
  )
}

function checkTime({ headers }: Pick<Response, 'headers'>): void {
  const clockErrorMs = now() - Date.parse(headers.date ?? '')
  if (Math.abs(clockErrorMs) <= maxClockErrorMs || Number.isNaN(clockErrorMs)) return
  const seconds = Math.round(Math.abs(clockErrorMs) / 1000)
  throw new HopError(
    'Time',
    `The clock of this machine is ${seconds} s ${clockErrorMs < 0 ? 'behind' : 'ahead of'} that of the platform. Correct it, for example with NTP, because certificates are valid only for a time.`,
  )
}

async function checkRelay(identity: Identity, stateFolder: string, clock: ServerClock): Promise<void> {
  const { relayId, clusterId, tokenId } = identity
  const client = new Client({ ...identity, privateKey: keyFor(stateFolder, tokenId) }, clock, () => {})
  const answerCode = await client.probe().then(codeOf, messageOf)
  if (answerCode === 'relay_revoked')
    throw new HopError(
      'Relay',
      `The platform has revoked ${relayId}. Issue a new enrollment token for ${clusterId} and start the relay with it.`,
      exitCodes.revoked,
    )
  if (answerCode === 'job_not_claimable')
    return print('Relay', `ok, ${relayId} waits for approval. Approve it with "plat cluster approve ${clusterId}".`)
  if (answerCode !== 'job_not_found')
    throw new HopError(
      'Relay',
      `The platform does not accept the requests of ${relayId} (${answerCode}). Check that no proxy changes or blocks POST requests, and that no other platform has this address.`,
    )
  print('Relay', `ok, ${relayId} of ${clusterId} is accepted`)
}

async function checkChannel(stateFolder: string): Promise<void> {
  const { isRunning, isOpen, url, problem } = new ModeFile(stateFolder).read()
  if (isRunning && isOpen) return print('Channel', 'ok, open: work starts at once')
  if (url === undefined)
    return print(
      'Channel',
      isRunning
        ? 'the platform offers none, so the relay polls'
        : 'not checked, because the relay has not been started',
    )
  const channelProblem = isRunning ? (problem ?? 'it is being opened') : await tryOpen(url)
  if (channelProblem !== undefined)
    throw new HopError(
      'Channel',
      `${url} is not open: ${channelProblem}. The relay works without it, but polls. Let proxies and firewalls pass WebSocket connections to this address.`,
    )
  print('Channel', 'ok, its address accepts connections; the relay is not running')
}
