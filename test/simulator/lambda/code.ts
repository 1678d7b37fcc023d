import type { JsonObject } from '@platform/local/emulators/http/request'
import type { Settings } from './settings.ts'

/** A program of Node.js, ready to be started. */
export interface Program {
  /** Of the process, after the path of Node.js. */
  arguments: readonly string[]
  folder: string
  environment: Readonly<Record<string, string>>
}

/** Thrown where a program can be prepared but never started. Lambda tells it with every invocation. */
export class InvalidEntrypoint extends Error {
  override readonly name = 'InvalidEntrypoint'
}

/** What a function is made of. Its content never changes: an update brings other code. */
export interface Code {
  packageType: 'Image' | 'Zip'
  /** `CodeSha256`. */
  sha256: string
  sizeBytes: number
  /** The member `Code` of `GetFunction`. */
  location: JsonObject
  /** What Lambda does while a function is Pending, or its update InProgress; a throw makes it Failed. */
  prepare: () => Promise<void>
  /** How it is started, once it is prepared. Throws `InvalidEntrypoint`. */
  program: (settings: Settings) => Promise<Program>
}

/** Finds the code that a request names; refuses what Lambda would not take. */
export type CodeFinder = (named: CodeName) => Promise<Code>

/** The members of requests that name code. */
export interface CodeName {
  packageType: 'Image' | 'Zip'
  imageUri?: string | undefined
  s3Bucket?: string | undefined
  s3Key?: string | undefined
  /** In place of an object of S3. */
  zipFile?: Buffer | undefined
}
