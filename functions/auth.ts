import { localLogin, login, logout, me, refresh } from '@platform/contract/auth'
import * as Session from '@platform/core/session'
import * as SignIn from '@platform/core/sign-in'
import * as User from '@platform/core/user'
import { answer } from '@platform/http/answer'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(login, async ({ body, origin }) => answer(200, await SignIn.signIn(body, origin))),
  route(localLogin, async ({ body, origin }) => answer(200, await Session.signIn(body, origin))),
  route(refresh, async ({ body, origin }) => answer(200, await Session.refresh(body, origin))),
  route(logout, async ({ caller }) => {
    await Session.signOut(caller)
    return answer(204)
  }),
  route(me, async ({ caller }) => answer(200, await User.profile(caller))),
)
