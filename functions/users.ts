import { createApiToken, deleteApiToken, listApiTokens, revokeUserTokens } from '@platform/contract/api-token'
import { endSession, endUserSessions, listSessions } from '@platform/contract/session'
import {
  changePassword,
  createUser,
  deleteUser,
  getUser,
  listRoles,
  listUsers,
  updateUser,
} from '@platform/contract/user'
import * as ApiToken from '@platform/core/accounts/api-token'
import * as OwnPassword from '@platform/core/accounts/change-password'
import * as SessionList from '@platform/core/accounts/session-list'
import * as User from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { answer } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(changePassword, async ({ caller, body, origin }) => {
    await OwnPassword.changePassword(caller, body, origin)
    return answer(204)
  }),
  route(listSessions, async ({ caller }) => answer(200, await SessionList.list(caller))),
  route(endSession, async ({ caller, params }) => {
    await SessionList.end(caller, params.id)
    return answer(204)
  }),
  route(listApiTokens, async ({ caller }) => answer(200, await ApiToken.list(caller))),
  route(createApiToken, async ({ caller, body }) => answer(201, await ApiToken.create(caller, body))),
  route(deleteApiToken, async ({ caller, params }) => {
    await ApiToken.remove(caller, params.id)
    return answer(204)
  }),
  route(listRoles, ({ caller }) => answer(200, User.roles(caller))),
  route(listUsers, async ({ caller, query }) => answer(200, await User.list(caller, query))),
  route(createUser, async ({ caller, body }) => answer(201, await UserAdmin.create(caller, body))),
  route(getUser, async ({ caller, params }) => answer(200, await User.read(caller, params.id))),
  route(updateUser, async ({ caller, params, body }) => answer(200, await UserAdmin.update(caller, params.id, body))),
  route(deleteUser, async ({ caller, params }) => {
    await UserAdmin.remove(caller, params.id)
    return answer(204)
  }),
  route(endUserSessions, async ({ caller, params }) => {
    await UserAdmin.endUserSessions(caller, params.id)
    return answer(204)
  }),
  route(revokeUserTokens, async ({ caller, params }) => {
    await UserAdmin.revokeTokens(caller, params.id)
    return answer(204)
  }),
)
