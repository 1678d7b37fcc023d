import { AwsFault } from '@platform/local/emulators/http/error'
import { localAccountId, localRegion } from '@platform/local/emulators/http/environment'
import { invalidValue } from './refusals.ts'

/** What invocations without a qualifier run: the one revision that can be changed. */
export const latestVersion = '$LATEST'

/** A function as calls name it. */
export interface Address {
  name: string
  /** A version or an alias. */
  qualifier: string | undefined
}

const pattern =
  /^(?:(?:arn:aws:lambda:[a-z0-9-]+:)?\d{12}:function:)?(?<name>[\w-]{1,64})(?::(?<qualifier>\$LATEST|[\w-]{1,128}))?$/

/** Reads a name or an ARN, whole or in part; its qualifier may stand beside it. Refuses what is none. */
export function addressOf(text: string, beside?: string): Address {
  const groups = pattern.exec(text)?.groups
  if (groups === undefined) {
    throw new AwsFault('ValidationException', `${JSON.stringify(text)} at 'functionName' is no name of a function.`)
  }
  const { name = '', qualifier } = groups
  if (qualifier !== undefined && beside !== undefined && qualifier !== beside) {
    throw invalidValue('The qualifier in the ARN is not the one beside it.')
  }
  return { name, qualifier: qualifier ?? beside }
}

/** The ARN of a function, or of a version or an alias of it. */
export const arnOf = (name: string, qualifier?: string): string =>
  `arn:aws:lambda:${localRegion}:${localAccountId}:function:${name}${qualifier === undefined ? '' : `:${qualifier}`}`
