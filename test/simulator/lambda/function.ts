import type { JsonObject } from '@platform/local/emulators/http/request'
import { arnOf, latestVersion } from './address.ts'
import type { Code } from './code.ts'
import type { Settings } from './settings.ts'

/** A function at one time: what `$LATEST` is or was, or a version. All but how ready it is stays as it is. */
export interface Revision {
  readonly functionName: string
  /** `$LATEST`, or the number of a version. */
  readonly version: string
  readonly settings: Settings
  readonly code: Code
  readonly lastModified: string
  /** Another one after every change. */
  revisionId: string
  state: 'Pending' | 'Active' | 'Inactive' | 'Failed'
  stateReason?: { code: string; text: string } | undefined
  /** Absent before the function was Active for the first time. */
  lastUpdate?: 'InProgress' | 'Successful' | 'Failed'
  lastUpdateReason?: { code: string; text: string } | undefined
}

export interface Alias {
  name: string
  version: string
  description: string
  /** Another version → its share of the invocations, from 0 to 1. */
  weights: Readonly<Record<string, number>>
  revisionId: string
}

export interface LambdaFunction {
  readonly name: string
  tags: Readonly<Record<string, string>>
  latest: Revision
  /** What invocations of `$LATEST` run: what it was before, while it is being updated. */
  served: Revision
  /** By number, in their order. */
  readonly versions: Map<string, Revision>
  readonly aliases: Map<string, Alias>
  /** No number is given twice. */
  versionsMade: number
}

/** A new revision in place of another, or a first one. */
export const newRevision = (
  from: Pick<Revision, 'functionName' | 'version' | 'settings' | 'code' | 'state'> & Partial<Revision>,
): Revision => ({ ...from, revisionId: crypto.randomUUID(), lastModified: new Date().toISOString() })

/** A function as answers describe it. */
export const configurationOf = (revision: Revision): JsonObject => ({ ...listedOf(revision), ...readinessOf(revision) })

/** A function as lists describe it: they do not say whether it is ready. */
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
