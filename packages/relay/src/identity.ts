import { createPrivateKey, createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { FatalError } from './exit-codes.ts'
import { readIfPresent, writeDurably } from './files.ts'
import { type JsonObject, parseJsonObject } from './json.ts'
import type { NodeConfig } from './nodes.ts'

export type EnrolledNode = { id: string; config: NodeConfig }

/** The result of the enrollment; it survives restarts. */
export type Identity = {
  server: string
  tokenId: string
  relayId: string
  clusterId: string
  heartbeatIntervalSeconds: number
  /** The pinned keys that sign job statements. */
  statementKeys: (JsonWebKey & { kid: string })[]
  nodes: EnrolledNode[]
}

/** The key pair for an enrollment token, created once: an enrollment with a lost response is repeated with it. */
export function keyFor(stateFolder: string, tokenId: string): KeyObject {
  const path = keyPath(stateFolder, tokenId)
  const stored = readIfPresent(path)
  if (stored !== undefined) return createPrivateKey(stored)
  const { privateKey } = generateKeyPairSync('ed25519')
  writeDurably(path, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  return privateKey
}

/** The identity that an earlier start stored; undefined before the enrollment. */
export function loadIdentity(stateFolder: string): Identity | undefined {
  const path = join(stateFolder, 'identity.json')
  const text = readIfPresent(path)
  if (text === undefined) return undefined
  const stored = parseJsonObject(text)
  if (!stored || !isIdentity(stored)) {
    throw new FatalError('stateInUse', `${path} is damaged. Restore it, or enroll again with another --state-dir.`)
  }
  return stored
}

/** Stores an identity and deletes the key of the one it replaces. */
export function storeIdentity(stateFolder: string, identity: Identity, replaced: Identity | undefined): void {
  writeDurably(join(stateFolder, 'identity.json'), JSON.stringify(identity, undefined, 2))
  if (replaced) rmSync(keyPath(stateFolder, replaced.tokenId), { force: true })
}

/** The pinned keys by `kid`. */
export function statementKeysOf(identity: Identity): Map<string, KeyObject> {
  return new Map(identity.statementKeys.map((key) => [key.kid, createPublicKey({ key, format: 'jwk' })]))
}

function keyPath(stateFolder: string, tokenId: string): string {
  return join(stateFolder, `${tokenId}.key.pem`)
}

function isIdentity(stored: JsonObject): stored is Identity & JsonObject {
  return ['server', 'tokenId', 'relayId', 'clusterId', 'statementKeys', 'nodes'].every((name) => name in stored)
}
