import { platformError } from '@platform/core/error'

/** `path` is decoded; `sentPath` and `query` are not. */
export interface Target {
  path: string
  sentPath: string
  query: string
}

const originPattern = /^https?:\/\/[^/?]*/i

/** Throws `invalid_path` if the path cannot be decoded or does not begin with a slash. */
export function parseTarget(text: string): Target {
  const relativeTarget = text.replace(originPattern, '')
  const [rawPath, query] = splitAtFirst(relativeTarget, '?')
  const sentPath = rawPath === '' && relativeTarget !== text ? '/' : rawPath
  const path = decode(sentPath)
  if (!path.startsWith('/')) throw platformError('invalid_path')
  return { path, sentPath, query }
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
