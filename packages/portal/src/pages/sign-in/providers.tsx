import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { configurationQuery } from '../../api/account.ts'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { publicQuery } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import styles from './sign-in.module.css'

const choicesQuery = {
  queryKey: ['sign-in-choices'],
  queryFn: () => unwrap(api.GET('/api/v1/auth/providers')),
  meta: publicQuery,
}

/** The longest return path that the platform stores. */
const longestPlace = 500

/** Other ways to sign in. Directory users use the password form. */
export function Providers({ returnTo }: { returnTo: string | undefined }) {
  const { data, error, refetch } = useQuery(choicesQuery)
  const { publicUrl } = useSuspenseQuery(configurationQuery).data
  if (error !== null && data === undefined) return <ErrorNote error={error} onRetry={() => void refetch()} />
  const items = data?.items ?? []
  const directories = items.filter(({ authorizeUrl }) => authorizeUrl === undefined)
  const ways = items.flatMap((choice) => {
    const url = addressOf(choice, returnTo, publicUrl)
    return url === undefined ? [] : [{ ...choice, url }]
  })
  return (
    <>
      {directories.length > 0 && (
        <p className={styles['hint']}>
          Accounts of {directories.map(({ displayName }) => displayName).join(', ')} sign in here too.
        </p>
      )}
      {ways.length > 0 && (
        <>
          <p className={styles['or']}>or</p>
          <div className={styles['providers']}>
            {ways.map(({ id, displayName, url }) => (
              <Button key={id} onClick={() => location.assign(url)}>
                Continue with {displayName}
              </Button>
            ))}
          </div>
        </>
      )}
    </>
  )
}

/** The start URL of a provider: only at this platform, by this or its public origin. */
function addressOf(
  { authorizeUrl }: Schemas['SignInChoice'],
  returnTo: string | undefined,
  publicUrl: string | undefined,
): string | undefined {
  const url = URL.parse(authorizeUrl ?? '')
  const own = [location.origin, publicUrl && URL.parse(publicUrl)?.origin]
  if (url === null || !own.includes(url.origin)) return undefined
  if (returnTo !== undefined && returnTo.length <= longestPlace) url.searchParams.set('returnTo', returnTo)
  return url.href
}
