import { platformError } from '@platform/core/error'

/** The target of a request: the decoded path as functions see it, and the raw query. */
export interface Target {
  path: string
  query: string
}

const origin = /^https?:\/\/[^/?]*/i

/** Parses a request target; rejects one that cannot be decoded. */
export function parseTarget(text: string): Target {
  const relative = text.replace(origin, '')
  const [rawPath, query] = splitAtFirst(relative, '?')
  const path = decode(rawPath === '' && relative !== text ? '/' : rawPath)
  if (!path.startsWith('/')) throw platformError('invalid_path')
  return { path, query }
}

function decode(rawPath: string): string {
  try {
    return decodeURIComponent(rawPath)
  } catch (error) {
    throw platformError('invalid_path', {}, { cause: error })
  }
}

function splitAtFirst(text: string, separator: string): [string, string] {
  const index = text.indexOf(separator)
  return index === -1 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)]
}
