import { localLogin, login, logout, me, refresh } from '@platform/contract/auth'
import { beginSession, endBrowserSession, refreshSession } from '@platform/contract/browser-session'
import * as BrowserSession from '@platform/core/identity-providers/sign-in'
import * as Session from '@platform/core/accounts/session'
import * as SignIn from '@platform/core/identity-providers/sign-in'
import * as User from '@platform/core/accounts/user'
import { idempotencyKeyOf } from '@platform/http/idempotency'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import {
  setSessionCookies,
  clearCookies,
  deviceCookie,
  refreshCookie,
  renewCookies,
  browserSecretsOf,
} from '@platform/http/cookies'

export const handler = serve(
  route(login, async ({ body, origin }) => result(200, await SignIn.signIn(body, origin))),
  route(localLogin, async ({ body, origin }) => result(200, await Session.signIn(body, origin))),
  route(refresh, async ({ body, origin, headers }) =>
    result(200, await SignIn.refresh(body, origin, { idempotencyKey: idempotencyKeyOf(headers) })),
  ),
  route(logout, async ({ caller }) => {
    await Session.signOut(caller)
    return result(204)
  }),
  route(beginSession, async ({ body, headers, origin }) =>
    setSessionCookies(
      headers,
      await BrowserSession.startBrowserSession(body, {
        browsers: browserSecretsOf(headers),
        origin: { ...origin, device: deviceCookie(headers) },
        idempotencyKey: idempotencyKeyOf(headers),
      }),
    ),
  ),
  route(refreshSession, ({ headers, origin }) =>
    renewCookies(headers, () =>
      SignIn.refresh({ refreshToken: refreshCookie(headers) }, origin, { idempotencyKey: idempotencyKeyOf(headers) }),
    ),
  ),
  route(endBrowserSession, async ({ headers, origin }) => {
    await Session.endSessionByToken(refreshCookie(headers), origin)
    return clearCookies(headers)
  }),
  route(me, async ({ caller }) => result(200, await User.profile(caller))),
)
