import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { FatalError } from './exit-codes.ts'
import { readIfPresent, writeDurably } from './files.ts'
import { type JsonObject, parseJsonObject } from './json.ts'
import type { NodeConfig } from './nodes.ts'
import type { StatementKey } from './statement-keys.ts'

export type EnrolledNode = { id: string; config: NodeConfig }

/** The result of the enrollment, which is stored on disk. */
export type Identity = {
  server: string
  tokenId: string
  relayId: string
  clusterId: string
  heartbeatIntervalSeconds: number
  /** Public keys of the platform that verify job statements, newest first. The enrollment stores the current key. */
  statementKeys: StatementKey[]
  nodes: EnrolledNode[]
}

/**
 * Returns the private key for an enrollment token or enrollment key, and creates it at the first call. An enrollment
 * whose response was lost can therefore be repeated. Throws `FatalError` if the file is damaged.
 */
export function keyFor(stateFolder: string, tokenId: string): KeyObject {
  const path = keyPath(stateFolder, tokenId)
  const storedKey = readIfPresent(path)
  if (storedKey !== undefined) return parseKey(path, storedKey)
  const { privateKey } = generateKeyPairSync('ed25519')
  writeDurably(path, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  return privateKey
}

function parseKey(path: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    throw damagedError(path)
  }
}

function damagedError(path: string): FatalError {
  return new FatalError('stateUnusable', `${path} is damaged. Restore it, or enroll again with another --state-dir.`)
}

/** Returns the stored identity; undefined before the enrollment. Throws `FatalError` if the file is damaged. */
export function loadIdentity(stateFolder: string): Identity | undefined {
  const path = join(stateFolder, 'identity.json')
  const text = readIfPresent(path)
  if (text === undefined) return undefined
  const storedObject = parseJsonObject(text)
  if (!storedObject || !isIdentity(storedObject)) throw damagedError(path)
  return storedObject
}

/** Stores an identity and deletes the key of the identity that it replaces. */
export function storeIdentity(stateFolder: string, identity: Identity, replacedIdentity: Identity | undefined): void {
  writeDurably(join(stateFolder, 'identity.json'), JSON.stringify(identity, undefined, 2))
  if (replacedIdentity) rmSync(keyPath(stateFolder, replacedIdentity.tokenId), { force: true })
}

/** Replaces the public keys of the platform in the stored identity. */
export function storeStatementKeys(stateFolder: string, statementKeys: StatementKey[]): void {
  const storedIdentity = loadIdentity(stateFolder)
  if (storedIdentity) storeIdentity(stateFolder, { ...storedIdentity, statementKeys }, undefined)
}

function keyPath(stateFolder: string, tokenId: string): string {
  return join(stateFolder, `${tokenId}.key.pem`)
}

function isIdentity(storedObject: JsonObject): storedObject is Identity & JsonObject {
  return ['server', 'tokenId', 'relayId', 'clusterId', 'statementKeys', 'nodes'].every((name) => name in storedObject)
}
