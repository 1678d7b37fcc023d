import { platformError } from '@platform/core/error'
import type { Next } from 'hono'
import type { HttpContext } from './context.ts'

// oxlint-disable-next-line no-control-regex
const strange = /[%\\?#\u0000-\u001f\u007f-\u009f]|\/\/|\/\.{1,2}(?:\/|$)/

/**
 * Refuses a decoded path that means something else to whoever decodes or resolves it once more. No route holds such
 * characters, and a traversal must not reach one.
 */
export function rejectInvalidPath({ env }: HttpContext, next: Next): Promise<void> {
  if (strange.test(env.event.rawPath)) throw platformError('invalid_path')
  return next()
}
