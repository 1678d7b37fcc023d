import type { JsonObject } from '@platform/local/emulators/http/request'
import { arnOf, latestVersion } from './address.ts'
import type { Code } from './code.ts'
import type { Settings } from './settings.ts'

/** A function at one time: `$LATEST` or a version. Only its readiness changes. */
export interface Revision {
  readonly functionName: string
  readonly version: string
  readonly settings: Settings
  readonly code: Code
  readonly lastModified: string
  revisionId: string
  state: 'Pending' | 'Active' | 'Inactive' | 'Failed'
  stateReason?: { code: string; text: string } | undefined
  lastUpdate?: 'InProgress' | 'Successful' | 'Failed'
  lastUpdateReason?: { code: string; text: string } | undefined
}

export interface Alias {
  name: string
  version: string
  description: string
  /** Other version → share of invocations, from 0 to 1. */
  weights: Readonly<Record<string, number>>
  revisionId: string
}

export interface LambdaFunction {
  readonly name: string
  tags: Readonly<Record<string, string>>
  latest: Revision
  /** Runs invocations of `$LATEST`: the previous revision during an update. */
  served: Revision
  readonly versions: Map<string, Revision>
  readonly aliases: Map<string, Alias>
  /** Numbers are never reused. */
  versionsMade: number
}

export const newRevision = (
  from: Pick<Revision, 'functionName' | 'version' | 'settings' | 'code' | 'state'> & Partial<Revision>,
): Revision => ({ ...from, revisionId: crypto.randomUUID(), lastModified: new Date().toISOString() })

export const configurationOf = (revision: Revision): JsonObject => ({ ...listedOf(revision), ...readinessOf(revision) })

/** Lists omit the readiness. */
export function listedOf(revision: Revision): JsonObject {
  const { functionName, version, settings, code } = revision
  const { architecture, ImageConfig, Environment, ...plain } = settings
  return {
    ...plain,
    FunctionName: functionName,
    FunctionArn: arnOf(functionName, version === latestVersion ? undefined : version),
    Version: version,
    RevisionId: revision.revisionId,
    LastModified: revision.lastModified,
    PackageType: code.packageType,
    CodeSha256: code.sha256,
    CodeSize: code.sizeBytes,
    Architectures: [architecture],
    ...(Environment && { Environment }),
    ...(ImageConfig && { ImageConfigResponse: { ImageConfig } }),
  }
}

const readinessOf = ({ state, stateReason, lastUpdate, lastUpdateReason }: Revision): JsonObject => ({
  State: state,
  ...(stateReason && { StateReason: stateReason.text, StateReasonCode: stateReason.code }),
  ...(lastUpdate && { LastUpdateStatus: lastUpdate }),
  ...(lastUpdateReason && {
    LastUpdateStatusReason: lastUpdateReason.text,
    LastUpdateStatusReasonCode: lastUpdateReason.code,
  }),
})
