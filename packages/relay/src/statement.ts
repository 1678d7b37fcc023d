import type { InvokeScriptPayload } from '@platform/contract/job'
import { createHash, type KeyObject } from 'node:crypto'
import { isJsonObject, type JsonObject } from './json.ts'
import { InvalidJws, verifyJws } from './jws.ts'

const statementType = 'job-statement+jws'
const maxTimeoutSeconds = 172_800

/** The response to a claim before it is verified. */
export type UnverifiedClaim = { leaseId: string; statement: unknown; payload: unknown }

/** Thrown if a job must not run. The message states the reason. */
export class StatementError extends Error {}

export type ExpectedClaim = { jobId: string; clusterId: string; keys: ReadonlyMap<string, KeyObject>; nowMs: number }

/**
 * Returns the payload of a claim. Throws `StatementError` unless the payload is valid, the server has signed it for
 * this job and cluster, and the statement has not expired.
 */
export function verifyClaim({ statement, payload }: UnverifiedClaim, expected: ExpectedClaim): InvokeScriptPayload {
  if (typeof statement !== 'string' || !isJsonObject(payload)) throw new StatementError('it has no statement')
  const claims = claimsOf(statement, expected.keys)
  const payloadSha256 = createHash('sha256').update(JSON.stringify(payload)).digest('hex')
  if (claims.jobId !== expected.jobId) throw new StatementError('its statement is for another job')
  if (claims.clusterId !== expected.clusterId) throw new StatementError('its statement is for another cluster')
  if (claims.payloadSha256 !== payloadSha256) throw new StatementError('its payload does not match its statement')
  if (typeof claims.exp !== 'number' || claims.exp * 1000 <= expected.nowMs) {
    throw new StatementError('its statement has expired')
  }
  return parsePayload(payload)
}

function parsePayload({ script, targetNodeIds, timeoutSeconds }: JsonObject): InvokeScriptPayload {
  if (typeof script !== 'string' || script === '') throw new StatementError('it contains no script')
  if (targetNodeIds !== undefined && !isStringList(targetNodeIds))
    throw new StatementError('its targetNodeIds are not a list')
  if (timeoutSeconds !== undefined && !isTimeout(timeoutSeconds))
    throw new StatementError('its timeoutSeconds is invalid')
  return { script, targetNodeIds, timeoutSeconds }
}

function claimsOf(statement: string, keys: ReadonlyMap<string, KeyObject>): JsonObject {
  try {
    return verifyJws(statement, statementType, keys)
  } catch (error) {
    if (error instanceof InvalidJws) throw new StatementError(`its statement is invalid: ${error.message}`)
    throw error
  }
}

function isStringList(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
}

function isTimeout(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= maxTimeoutSeconds
}
