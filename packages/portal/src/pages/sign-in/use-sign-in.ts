import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useEffectEvent, useState } from 'react'
import { meQuery } from '../../api/account.ts'
import { queries } from '../../api/query.ts'
import { type Proof, signIn } from '../../api/sign-in.ts'
import { defined } from '../../lib/search.ts'
import { providerFailure, withTimeToRetry } from './failures.ts'
import { safeReturnPath } from './return-path.ts'

/** Codes that this page has exchanged: each works once, and effects may run twice. */
const traded = new Set<string>()

export type SignInState = ReturnType<typeof useSignIn>

/** Signs in by the address's code, an existing session or the form. */
export function useSignIn() {
  const search = useSearch({ from: '/sign-in' })
  const navigate = useNavigate()
  const [{ code, error, traceId }] = useState(search)
  const [failure, setFailure] = useState<unknown>(() => error && providerFailure(error, traceId))
  const [isTrading, setIsTrading] = useState(code !== undefined)
  const returnTo = safeReturnPath(search.returnTo)

  const goOn = () => navigate({ href: returnTo ?? '/dashboard', replace: true })
  const open = async (proof: Proof) => {
    try {
      await signIn(proof)
    } catch (refusal) {
      throw withTimeToRetry(refusal)
    }
    await goOn()
  }
  const enter = async (proof: Proof) => {
    setFailure(undefined)
    await open(proof)
  }
  const trade = async (secret: string) => {
    if (traded.has(secret)) return
    traded.add(secret)
    await navigate({ to: '/sign-in', search: defined({ returnTo: search.returnTo }), replace: true })
    await open({ code: secret }).catch((refusal: unknown) => {
      setFailure(refusal)
      setIsTrading(false)
    })
  }
  const goOnIfSignedIn = async () => {
    // A user who was just redirected here has no session.
    if (queries.getQueryState(meQuery.queryKey) !== undefined) return
    const me = await queries.fetchQuery(meQuery).catch(() => undefined)
    if (me !== undefined) await goOn()
  }
  const begin = useEffectEvent(() => {
    if (code !== undefined) void trade(code)
    else if (error === undefined) void goOnIfSignedIn()
  })
  useEffect(() => begin(), [])
  return { enter, failure, returnTo, isTrading }
}
