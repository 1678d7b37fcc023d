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

export interface LambdaOptions {
  port?: number
  /** Access key that requests must be signed with. */
  accessKeyId?: string
  images?: ImageSource
  /** Root of the folders that zip functions are made of: bucket `folders`, the key is the path. */
  codeDir?: string
  zipDir?: string
  settleMs?: number
  initLimitMs?: number
  concurrency?: number
  environmentOf?: (functionName: string) => Readonly<Record<string, string>>
  random?: () => number
  onOutput?: (functionName: string, text: string) => void
}

export interface RunningLambda extends AwsServer {
  /** Keeps functions Pending and updates InProgress. */
  hold: () => void
  release: () => Promise<void>
  reap: (functionName?: string) => Promise<void>
  /** Makes a function Inactive, as after weeks without an invocation. */
  deactivate: (functionName: string, qualifier?: string) => void
  sandboxes: (functionName: string) => Sandbox[]
}

/** Serves Lambda on a loopback port: functions in memory, each sandbox a process, synchronous invocations only. */
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
    if (images === undefined) throw invalidValue('No image source is configured.')
    return imageCode(images, imageUri)
  }
