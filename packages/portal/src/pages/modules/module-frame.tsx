import { useRef, useState } from 'react'
import { Loading } from '../../ui/state.tsx'
import { useBridge } from './bridge/use-bridge.ts'
import styles from './module-frame.module.css'

interface ModuleFrameProps {
  src: string
  title: string
  moduleId: string
  apiBasePath: string | undefined
}

/**
 * A frame that a module's page can do nothing outside of: its scripts run in an origin of their own, it opens no windows and
 * leads nobody away. What it needs of the platform it asks for by the bridge.
 */
export function ModuleFrame({ src, title, moduleId, apiBasePath }: ModuleFrameProps) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [isLoaded, setIsLoaded] = useState(false)
  useBridge(frame, { moduleId, apiBasePath })
  return (
    <>
      <iframe
        ref={frame}
        src={src}
        title={title}
        sandbox="allow-scripts allow-forms"
        referrerPolicy="no-referrer"
        className={styles['frame']}
        onLoad={() => setIsLoaded(true)}
      />
      {!isLoaded && (
        <div className={styles['over']}>
          <Loading what="the module’s page" />
        </div>
      )}
    </>
  )
}
