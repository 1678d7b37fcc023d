import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useEffectEvent, useState } from 'react'
import { configurationQuery } from '../../api/account.ts'
import { ApiError, isApiError } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { signIn } from '../../api/sign-in.ts'
import { remember, remembered } from '../../lib/preferences.ts'
import type { FormValues } from '../../ui/form.tsx'
import { type SetupForm, initialForm, mergeValues, withoutSecrets } from './answers.ts'
import { checkToken, complete, howToRetrieve } from './completion.ts'
import { reachable, stepFrom, stepOf, type StepName } from './steps.ts'

const draftName = 'setup'
const draftSeconds = 7 * 24 * 3600

function rememberedDraft(): Record<string, unknown> {
  try {
    const draft: unknown = JSON.parse(remembered(draftName) ?? '{}')
    return typeof draft === 'object' && draft !== null ? { ...draft } : {}
  } catch {
    return {}
  }
}

function forgetSetup(): void {
  remember(draftName, undefined)
  queries.removeQueries({ queryKey: configurationQuery.queryKey })
}

/** State and actions of the wizard. */
export interface Setup {
  step: StepName
  /** Whether a later step was requested but this one is incomplete. */
  isSentBack: boolean
  answers: SetupForm
  /** The repeated password. */
  again: string
  setAgain: (typed: string) => void
  /** The platform's error for this step. */
  failure: unknown
  /** The command that prints the token. */
  hint: UseQueryResult<string>
  answer: (given: Partial<SetupForm>) => void
  /** Continues with the values of the form. Throws the platform's error. */
  next: (values: FormValues) => Promise<void>
  back: () => void
}

/** Stores all values except secrets in a cookie until setup is complete. */
export function useSetup(): Setup {
  const [draft] = useState(rememberedDraft)
  const [answers, setAnswers] = useState(() => initialForm(draft))
  const [again, setAgain] = useState('')
  const [refusal, setRefusal] = useState<{ step: StepName; error: unknown }>()
  const navigate = useNavigate()
  const { step: asked } = useSearch({ from: '/setup' })
  const wanted = asked ?? (typeof draft['step'] === 'string' ? draft['step'] : undefined)
  const step = reachable(wanted, answers)
  useDraft(answers, step)

  const show = (name: StepName) => navigate({ to: '/setup', search: { step: name } })
  const leave = async () => {
    forgetSetup()
    await navigate({ to: '/sign-in', search: { notice: 'setup-complete' }, replace: true })
  }
  const isHinted = step === 'welcome' || step === 'token'
  const hint = useQuery({ queryKey: ['setup', 'hint'], queryFn: howToRetrieve, staleTime: Infinity, enabled: isHinted })
  const isOver = isApiError(hint.error, 'setup_already_complete')
  const onOver = useEffectEvent(() => void leave())
  useEffect(() => {
    if (isOver) onOver()
  }, [isOver])
  const finish = async (all: SetupForm) => {
    const refreshToken = await complete(all)
    forgetSetup()
    try {
      await signIn({ refreshToken })
    } catch {
      // Setup is complete, and the user can sign in with the password.
      return leave()
    }
    return navigate({ to: '/dashboard', replace: true })
  }
  const next = async (values: FormValues) => {
    const all = mergeValues(answers, values)
    setAnswers(all)
    setRefusal(undefined)
    try {
      if (step === 'token') await checkToken(all)
      await (step === 'review' ? finish(all) : show(stepFrom(step, 1)))
    } catch (error) {
      if (isApiError(error, 'setup_already_complete')) return leave()
      const refused = error instanceof ApiError ? stepOf(error) : undefined
      if (refused === undefined || refused === step) throw error
      setRefusal({ step: refused, error })
      await show(refused)
    }
  }
  return {
    step,
    isSentBack: step !== wanted && wanted !== undefined,
    answers,
    again,
    setAgain,
    hint,
    failure: refusal?.step === step ? refusal.error : undefined,
    answer: (given) => setAnswers((before) => ({ ...before, ...given })),
    next,
    back: () => void show(stepFrom(step, -1)),
  }
}

function useDraft(answers: SetupForm, step: StepName): void {
  const draft = JSON.stringify({ step, ...withoutSecrets(answers) })
  useEffect(() => remember(draftName, draft, draftSeconds), [draft])
}
