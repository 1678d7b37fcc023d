import {
  configureProvider,
  consentPosted,
  consentReturned,
  deleteProvider,
  listProviders,
  requestConsent,
  testProvider,
} from '@platform/contract/identity'
import { authorize, callback, exchangeCode, listSignInOptions } from '@platform/contract/sign-in'
import * as Identity from '@platform/core/identity-providers/manage'
import { configure } from '@platform/core/identity-providers/configure'
import * as Consent from '@platform/core/identity-providers/consent'
import { handleConsentCallback } from '@platform/core/identity-providers/consent-callback'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { exchange } from '@platform/core/identity-providers/oidc/code'
import { result, redirect } from '@platform/http/result'
import { authenticateIfPermitted } from '@platform/http/authorize'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import { browserSecretsOf, signInCookies } from '@platform/http/cookies'

export const handler = serve(
  route(listProviders, async ({ caller }) => result(200, await Identity.list(caller))),
  route(configureProvider, async ({ caller, body }) => result(201, await configure(caller, body))),
  route(deleteProvider, async ({ caller, params }) => {
    await Identity.remove(caller, params.id)
    return result(204)
  }),
  route(testProvider, async ({ caller, params }) => result(200, await Identity.test(caller, params.id))),
  route(requestConsent, async ({ caller, params }) => result(200, await Consent.request(caller, params.id))),
  route(consentReturned, async ({ query, origin, headers }) =>
    redirect(
      await handleConsentCallback(query, origin, () => authenticateIfPermitted('platform:admin', headers, origin)),
    ),
  ),
  route(consentPosted, async ({ query, origin, headers }) =>
    redirect(
      await handleConsentCallback(query, origin, () => authenticateIfPermitted('platform:admin', headers, origin)),
    ),
  ),
  route(listSignInOptions, async () => result(200, { items: await Oidc.listSignInOptions() })),
  route(authorize, async ({ params, query, headers, origin }) => {
    const { location, browser } = await Oidc.startSignIn(params.id, query, origin)
    return redirect(location, signInCookies(headers, browser))
  }),
  route(callback, async ({ params, query, headers, origin }) =>
    redirect(await Oidc.completeSignIn(params.id, query, { browsers: browserSecretsOf(headers), origin })),
  ),
  route(exchangeCode, async ({ body, headers, origin }) =>
    result(200, await exchange(body.code, browserSecretsOf(headers), origin)),
  ),
)
