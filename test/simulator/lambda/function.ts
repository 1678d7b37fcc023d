import { localAccountId, localRegion } from '@platform/local/emulators/http/environment'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import type { JsonObject } from '@platform/local/emulators/http/request'
import type { Code } from './code.ts'
import { conflict, notFound, staleRevision } from './errors.ts'
import type { Fleet } from './fleet.ts'

export interface Settings {
  Description: string
  Role: string
  Timeout: number
  MemorySize: number
  Environment?: { Variables: Record<string, string> } | undefined
  Runtime?: string | undefined
  Handler?: string | undefined
  architecture: 'x86_64' | 'arm64'
}

interface Reason {
  code: string
  text: string
}

export interface Revision {
  readonly functionName: string
  readonly version: string
  readonly settings: Settings
  readonly code: Code
  readonly lastModified: string
  revisionId: string
  state: 'Pending' | 'Active' | 'Inactive' | 'Failed'
  stateReason?: Reason | undefined
  lastUpdate?: 'InProgress' | 'Successful' | 'Failed'
  lastUpdateReason?: Reason | undefined
}

export interface Alias {
  name: string
  version: string
  /** Other version → share of invocations, from 0 to 1. */
  weights: Readonly<Record<string, number>>
  revisionId: string
}

export interface LambdaFunction {
  readonly name: string
  readonly tags: Readonly<Record<string, string>>
  latest: Revision
  /** Invocations of `$LATEST` run this revision: the previous one during an update and after a failed update. */
  active: Revision
  readonly versions: Map<string, Revision>
  readonly aliases: Map<string, Alias>
  versionCount: number
}

export interface Lambda {
  functions: Map<string, LambdaFunction>
  fleet: Fleet
  preparation: Preparation
  findCode: (source: CodeSource) => Promise<Code>
  random: () => number
}

export interface CodeSource {
  packageType: 'Image' | 'Zip'
  ImageUri?: string | undefined
  S3Bucket?: string | undefined
  S3Key?: string | undefined
  ZipFile?: Buffer | undefined
}

export const latestVersion = '$LATEST'

const addressPattern =
  /^(?:(?:arn:aws:lambda:[a-z0-9-]+:)?\d{12}:function:)?(?<name>[\w-]{1,64})(?::(?<qualifier>\$LATEST|[\w-]{1,128}))?$/

export interface Address {
  FunctionName: string
  Qualifier?: string | undefined
}

export function parseAddress({ FunctionName, Qualifier }: Address): { name: string; qualifier: string | undefined } {
  const { name, qualifier = Qualifier } = addressPattern.exec(FunctionName)?.groups ?? {}
  if (name !== undefined) return { name, qualifier }
  throw new AwsServiceError(
    'ValidationException',
    `${JSON.stringify(FunctionName)} at 'functionName' is not a function name.`,
  )
}

export const arnOf = (name: string, qualifier?: string): string =>
  `arn:aws:lambda:${localRegion}:${localAccountId}:function:${name}${qualifier === undefined ? '' : `:${qualifier}`}`

export function functionOf({ functions }: Lambda, address: Address): LambdaFunction {
  const { name } = parseAddress(address)
  const entry = functions.get(name)
  if (entry === undefined) throw notFound(arnOf(name))
  return entry
}

export function revisionOf(lambda: Lambda, address: Address): Revision {
  const { name, qualifier = latestVersion } = parseAddress(address)
  const { aliases, latest, versions } = functionOf(lambda, address)
  const version = aliases.get(qualifier)?.version ?? qualifier
  const revision = version === latestVersion ? latest : versions.get(version)
  if (revision === undefined) throw notFound(arnOf(name, qualifier))
  return revision
}

export const newRevision = (
  from: Pick<Revision, 'functionName' | 'version' | 'settings' | 'code' | 'state'> & Partial<Revision>,
): Revision => ({ ...from, revisionId: crypto.randomUUID(), lastModified: new Date().toISOString() })

export function summaryOf({ functionName, version, settings, code, revisionId, lastModified }: Revision): JsonObject {
  const { architecture, ...rest } = settings
  return {
    ...rest,
    FunctionName: functionName,
    FunctionArn: arnOf(functionName, version === latestVersion ? undefined : version),
    Version: version,
    RevisionId: revisionId,
    LastModified: lastModified,
    PackageType: code.packageType,
    CodeSha256: code.sha256,
    CodeSize: code.sizeBytes,
    Architectures: [architecture],
  }
}

export function configurationOf(revision: Revision): JsonObject {
  const { state, stateReason, lastUpdate, lastUpdateReason } = revision
  return {
    ...summaryOf(revision),
    State: state,
    ...(stateReason && { StateReason: stateReason.text, StateReasonCode: stateReason.code }),
    ...(lastUpdate && { LastUpdateStatus: lastUpdate }),
    ...(lastUpdateReason && {
      LastUpdateStatusReason: lastUpdateReason.text,
      LastUpdateStatusReasonCode: lastUpdateReason.code,
    }),
  }
}

/** Prepares revisions that are Pending or whose update is InProgress, after a delay or when a test releases them. */
export interface Preparation {
  schedule: (work: () => Promise<void>) => void
  hold: () => void
  release: () => Promise<void>
  close: () => void
}

export function createPreparation(delayMs: number): Preparation {
  const timers = new Set<NodeJS.Timeout>()
  let heldWork: (() => Promise<void>)[] | undefined
  return {
    schedule: (work) => {
      if (heldWork !== undefined) heldWork.push(work)
      else timers.add(setTimeout(() => void work(), delayMs))
    },
    hold: () => {
      heldWork ??= []
    },
    release: async () => {
      const works = heldWork ?? []
      heldWork = undefined
      await Promise.all(works.map((work) => work()))
    },
    close: () => {
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

export function activateLater({ preparation }: Lambda, revision: Revision): void {
  preparation.schedule(async () => {
    const error = await prepare(revision)
    revision.state = error === undefined ? 'Active' : 'Failed'
    revision.stateReason = error
    revision.lastUpdate = error === undefined ? 'Successful' : 'Failed'
    revision.revisionId = crypto.randomUUID()
  })
}

/** Replaces `$LATEST`. The previous revision stays active until the new one is ready, or permanently if it fails. */
export function replaceLatest({ preparation, fleet }: Lambda, target: LambdaFunction, revision: Revision): void {
  target.latest = revision
  revision.lastUpdate = 'InProgress'
  revision.lastUpdateReason = { code: 'Creating', text: 'The update is being prepared.' }
  preparation.schedule(async () => {
    const error = await prepare(revision)
    revision.lastUpdate = error === undefined ? 'Successful' : 'Failed'
    revision.lastUpdateReason = error
    revision.revisionId = crypto.randomUUID()
    if (error !== undefined) return
    const previousRevision = target.active
    target.active = revision
    revision.state = 'Active'
    revision.stateReason = undefined
    await fleet.retire(previousRevision)
  })
}

async function prepare({ code }: Revision): Promise<Reason | undefined> {
  try {
    await code.prepare()
    return undefined
  } catch (error) {
    return { code: 'InvalidImage', text: error instanceof Error ? error.message : String(error) }
  }
}

export function requireReady({ latest }: LambdaFunction): void {
  const arn = arnOf(latest.functionName)
  if (latest.state === 'Pending') throw conflict(`${arn} is in the state Pending. Retry later.`)
  if (latest.lastUpdate === 'InProgress') throw conflict(`An update of ${arn} is in progress. Retry later.`)
}

export function requireRevision({ revisionId }: { revisionId: string }, expected: string | undefined): void {
  if (expected !== undefined && expected !== revisionId) throw staleRevision()
}
