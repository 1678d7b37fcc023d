import type { AwsServer } from '@platform/local/emulators/http/server'
import { folderCode, zipCode } from './code.ts'
import { invalidValue } from './errors.ts'
import { Fleet } from './fleet.ts'
import { createPreparation, functionOf, type Lambda, revisionOf } from './function.ts'
import { imageCode, type ImageSource } from './image-code.ts'
import type { Sandbox } from './sandbox.ts'
import { serveLambda } from './server.ts'

export interface LambdaOptions {
  accessKeyId?: string
  images?: ImageSource
  /** Folder that the bucket `folders` represents. The key of an object is a path below it. */
  codeDir?: string
  zipDir?: string
  settleMs?: number
  initLimitMs?: number
  environmentOf?: (functionName: string) => Readonly<Record<string, string>>
  random?: () => number
  onOutput?: (functionName: string, text: string) => void
}

export interface RunningLambda extends Omit<AwsServer, 'call'> {
  hold: () => void
  release: () => Promise<void>
  reap: () => Promise<void>
  /** Makes a function Inactive, as after weeks without an invocation. */
  deactivate: (functionName: string, qualifier?: string) => void
  sandboxes: (functionName: string) => Sandbox[]
}

export async function startLambda(options: LambdaOptions = {}): Promise<RunningLambda> {
  const { initLimitMs = 10_000, environmentOf = () => ({}), onOutput = () => {} } = options
  const fleet = new Fleet({ initLimitMs, environmentOf, onOutput })
  const preparation = createPreparation(options.settleMs ?? 50)
  const { random = Math.random } = options
  const lambda: Lambda = { functions: new Map(), fleet, preparation, findCode: codeFinder(options), random }
  const server = await serveLambda(lambda, options.accessKeyId)
  return {
    url: server.url,
    hold: preparation.hold,
    release: preparation.release,
    reap: fleet.reap,
    deactivate: (FunctionName, Qualifier) => {
      revisionOf(lambda, { FunctionName, Qualifier }).state = 'Inactive'
    },
    sandboxes: (FunctionName) => fleet.sandboxesOf(functionOf(lambda, { FunctionName }).name),
    close: async () => {
      preparation.close()
      await fleet.close()
      await server.close()
    },
  }
}

const codeFinder =
  ({ images, codeDir, zipDir }: LambdaOptions): Lambda['findCode'] =>
  async ({ packageType, ImageUri = '', S3Bucket = '', S3Key = '', ZipFile }) => {
    if (packageType === 'Zip' && ZipFile !== undefined) return zipCode(zipDir, ZipFile)
    if (packageType === 'Zip') return folderCode(codeDir, S3Bucket, S3Key)
    if (images === undefined) throw invalidValue('No image source is configured.')
    return imageCode(images, ImageUri)
  }
