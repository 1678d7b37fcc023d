import type { AwsServer } from '@platform/local/emulators/http/server'
import type { CodeFinder } from './code.ts'
import { Fleet } from './fleet.ts'
import { folderCode } from './folder-code.ts'
import { imageCode, type ImageSource } from './image-code.ts'
import type { Lambda } from './lambda.ts'
import { functionOf, revisionOf } from './lambda.ts'
import { invalidValue } from './refusals.ts'
import type { Sandbox } from './sandbox.ts'
import { serveLambda } from './server.ts'
import { createSettling } from './settling.ts'
import { zipCode } from './zip-code.ts'

/** Settings of the Lambda stand-in. */
export interface LambdaOptions {
  /** 0, the default, takes a free port. */
  port?: number
  /** When given, only requests signed with this access key are answered. */
  accessKeyId?: string
  /** For functions that are images. */
  images?: ImageSource
  /** Below it lie the folders that functions of the type Zip are made of: bucket `folders`, the key is the path. */
  codeDir?: string
  /** Where zip files are unpacked to that travel in requests. */
  zipDir?: string
  /** How long functions are Pending, and updates InProgress. */
  settleMs?: number
  /** What an init may take: 10 s. */
  initLimitMs?: number
  /** How many invocations there may be at once: 100. */
  concurrency?: number
  /** Function → what the credentials of its role are on AWS. */
  environmentOf?: (functionName: string) => Readonly<Record<string, string>>
  /** From 0 to 1: which version of an alias an invocation gets. */
  random?: () => number
  /** Hears what functions write. */
  onOutput?: (functionName: string, text: string) => void
}

/** A running Lambda, and what AWS does unasked. */
export interface RunningLambda extends AwsServer {
  /** From now on nothing gets ready that is Pending or InProgress. */
  hold: () => void
  /** All that is held gets ready. */
  release: () => Promise<void>
  /** Ends the sandboxes that are idle: all, or those of a function. */
  reap: (functionName?: string) => Promise<void>
  /** As after weeks without an invocation. */
  deactivate: (functionName: string, qualifier?: string) => void
  /** The sandboxes of a function that have not ended. */
  sandboxes: (functionName: string) => Sandbox[]
}

/** Serves Lambda on a loopback port: functions in memory, every sandbox a process. Invocations are waited for only. */
export async function startLambda(options: LambdaOptions = {}): Promise<RunningLambda> {
  const { initLimitMs = 10_000, concurrency = 100, environmentOf = () => ({}), onOutput = () => {} } = options
  const fleet = new Fleet({ initLimitMs, concurrency, environmentOf, onOutput })
  const settling = createSettling(options.settleMs ?? 50)
  const { random = Math.random } = options
  const lambda: Lambda = { functions: new Map(), fleet, settling, findCode: codeFinder(options), random }
  const server = await serveLambda(lambda, options.port ?? 0, options.accessKeyId)
  return {
    url: server.url,
    hold: settling.hold,
    release: settling.release,
    reap: (functionName) => fleet.reap(functionName),
    deactivate: (FunctionName, Qualifier) => {
      revisionOf(lambda, { FunctionName, Qualifier }).state = 'Inactive'
    },
    sandboxes: (FunctionName) => fleet.of(functionOf(lambda, { FunctionName }).name),
    close: async () => {
      settling.close()
      await fleet.close()
      await server.close()
    },
  }
}

const codeFinder =
  ({ images, codeDir, zipDir }: LambdaOptions): CodeFinder =>
  async ({ packageType, imageUri = '', s3Bucket = '', s3Key = '', zipFile }) => {
    if (packageType === 'Zip' && zipFile !== undefined) return zipCode(zipDir, zipFile)
    if (packageType === 'Zip') return folderCode(codeDir, s3Bucket, s3Key)
    if (images === undefined) throw invalidValue('There are no images here.')
    return imageCode(images, imageUri)
  }
