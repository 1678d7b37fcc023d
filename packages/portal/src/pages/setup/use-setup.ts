import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useEffectEvent, useState } from 'react'
import { configurationQuery } from '../../api/account.ts'
import { ApiError, isApiError } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { signIn } from '../../api/sign-in.ts'
import { remember, remembered } from '../../app/preferences.ts'
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

/** The wizard as it stands: which step is shown, what was answered, what the platform refused, and what one can do. */
export interface Setup {
  step: StepName
  /** Whether a later step was asked for, which needs this one. */
  isSentBack: boolean
  answers: SetupForm
  /** The password as it was typed once more. */
  again: string
  setAgain: (typed: string) => void
  /** What the platform said of this step. */
  failure: unknown
  /** How one gets the token. */
  hint: UseQueryResult<string>
  answer: (given: Partial<SetupForm>) => void
  /** Goes on with what the step's form holds. Throws what the platform says. */
  next: (values: FormValues) => Promise<void>
  back: () => void
}

/** All but the secrets outlives a reload, and the end of the browser, in a cookie that ends with the wizard. */
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
      // Setup is complete all the same, and name and password open a session too.
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
