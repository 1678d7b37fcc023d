import { sha256 } from '@platform/core/id'
import { type Result, result } from './result.ts'

/**
 * An answer that is made to be polled: with a tag of what it says. The caller's own cache may keep it, but asks each time;
 * where nothing has changed nothing is sent.
 */
export const withEtag = <Body>(body: Body): Result<200, Body> =>
  result(200, body, {
    'cache-control': 'private, no-cache',
    etag: `"${sha256(JSON.stringify(body)).slice(0, 32)}"`,
  })
