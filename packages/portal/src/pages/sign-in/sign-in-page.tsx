import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { configurationQuery } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { publicQuery } from '../../api/query.ts'
import { Standalone } from '../../shell/standalone.tsx'
import { Button } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { PasswordField, TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { useFirstField } from '../../ui/hooks.ts'
import { unload } from '../../ui/leave.tsx'
import { Loading } from '../../ui/state.tsx'
import styles from './sign-in.module.css'
import { type SignInState, useSignIn } from './use-sign-in.ts'

const notices = { 'setup-complete': 'Setup is complete. Sign in as the administrator.' }

export function SignInPage() {
  const { platformName } = useSuspenseQuery(configurationQuery).data
  const { notice } = useSearch({ from: '/sign-in' })
  const { signInWithPassword, failure, returnTo, isExchanging } = useSignIn()
  return (
    <Standalone title="Sign in" brand={platformName ?? 'Platform'}>
      {notice !== undefined && (
        <p role="status" className={styles['notice']}>
          {notices[notice]}
        </p>
      )}
      {failure !== undefined && <ErrorNote error={failure} />}
      {isExchanging ? (
        <Loading what="your session" />
      ) : (
        <>
          <PasswordForm signInWithPassword={signInWithPassword} />
          <Providers returnTo={returnTo} />
        </>
      )}
    </Standalone>
  )
}

interface PasswordFormProps extends Pick<SignInState, 'signInWithPassword'> {
  username?: string
}

export function PasswordForm({ username: knownUsername, signInWithPassword }: PasswordFormProps) {
  const element = useFirstField<HTMLDivElement>(knownUsername === undefined ? undefined : '[type=password]')
  return (
    <div ref={element}>
      <Form
        submitLabel="Sign in"
        hasDraft={false}
        onSubmit={({ username = '', password = '' }) => signInWithPassword({ username: username.trim(), password })}
      >
        <TextField
          name="username"
          label="User name"
          defaultValue={knownUsername}
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          maxLength={254}
          required
        />
        <PasswordField name="password" label="Password" autoComplete="current-password" maxLength={1024} required />
      </Form>
    </div>
  )
}

const choicesQuery = {
  queryKey: ['sign-in-choices'],
  queryFn: () => unwrap(api.GET('/api/v1/auth/providers')),
  meta: publicQuery,
}

// The maximum length that the platform stores.
const maxReturnPathLength = 500

/** The identity providers. Users of directories sign in with the password form. */
export function Providers({ returnTo }: { returnTo: string | undefined }) {
  const { data, error, refetch } = useQuery(choicesQuery)
  const { publicUrl } = useSuspenseQuery(configurationQuery).data
  if (error !== null && data === undefined) return <ErrorNote error={error} onRetry={() => void refetch()} />
  const items = data?.items ?? []
  const directories = items.filter(({ authorizeUrl }) => authorizeUrl === undefined)
  const startableOptions = items.flatMap((choice) => {
    const url = startUrl(choice, returnTo, publicUrl)
    return url === undefined ? [] : [{ ...choice, url }]
  })
  return (
    <>
      {directories.length > 0 && (
        <p className={styles['hint']}>
          Accounts of {directories.map(({ displayName }) => displayName).join(', ')} sign in here too.
        </p>
      )}
      {startableOptions.length > 0 && (
        <>
          <p className={styles['or']}>or</p>
          <div className={styles['providers']}>
            {startableOptions.map(({ id, displayName, url }) => (
              <Button key={id} onClick={() => unload(() => location.assign(url))}>
                Continue with {displayName}
              </Button>
            ))}
          </div>
        </>
      )}
    </>
  )
}

// Only URLs of this platform are accepted, at its current or its public origin.
function startUrl(
  { authorizeUrl }: Schemas['SignInChoice'],
  returnTo: string | undefined,
  publicUrl: string | undefined,
): string | undefined {
  const url = URL.parse(authorizeUrl ?? '')
  const allowedOrigins = [location.origin, publicUrl && URL.parse(publicUrl)?.origin]
  if (url === null || !allowedOrigins.includes(url.origin)) return undefined
  if (returnTo !== undefined && returnTo.length <= maxReturnPathLength) url.searchParams.set('returnTo', returnTo)
  return url.href
}
