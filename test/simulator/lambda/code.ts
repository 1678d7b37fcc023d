import type { JsonObject } from '@platform/local/emulators/http/request'
import type { Settings } from './settings.ts'

export interface Program {
  arguments: readonly string[]
  folder: string
  environment: Readonly<Record<string, string>>
}

/** A program that can be prepared but never started; Lambda reports it with every invocation. */
export class InvalidEntrypoint extends Error {
  override readonly name = 'InvalidEntrypoint'
}

/** The immutable code of a function. */
export interface Code {
  packageType: 'Image' | 'Zip'
  sha256: string
  sizeBytes: number
  location: JsonObject
  /** Runs while a function is Pending or an update InProgress; a throw makes it Failed. */
  prepare: () => Promise<void>
  /** Throws `InvalidEntrypoint`. */
  program: (settings: Settings) => Promise<Program>
}

export type CodeFinder = (named: CodeName) => Promise<Code>

export interface CodeName {
  packageType: 'Image' | 'Zip'
  imageUri?: string | undefined
  s3Bucket?: string | undefined
  s3Key?: string | undefined
  zipFile?: Buffer | undefined
}
