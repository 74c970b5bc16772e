-- SPDX-License-Identifier: LGPL-2.1-or-later
-- GHC: lazy lists, exceptions of both kinds, green threads, MVars, STM, copying collections, foreign calls with
-- callbacks.
{-# LANGUAGE ForeignFunctionInterface, ScopedTypeVariables #-}
module Main where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception
import Control.Monad
import Data.IORef
import Data.List (foldl', sort)
import qualified Data.Map.Strict as M
import Foreign
import Foreign.C.Types
import System.Environment
import System.Mem
import System.Timeout

foreign import ccall "stdlib.h qsort" cQsort :: Ptr CInt -> CSize -> CSize -> FunPtr Compare -> IO ()
foreign import ccall "wrapper" mkCompare :: Compare -> IO (FunPtr Compare)
foreign import ccall unsafe "math.h sin" cSin :: Double -> Double

type Compare = Ptr CInt -> Ptr CInt -> IO CInt

data Tree = Leaf | Node Tree Int Tree

grow :: Int -> Tree
grow 0 = Leaf
grow d = Node (grow (d - 1)) d (grow (d - 1))

size :: Tree -> Int
size Leaf = 0
size (Node l n r) = size l + n + size r

deep :: Int -> Int
deep 0 = throw (ErrorCall "bottom")
deep n = 1 + deep (n - 1)

main :: IO ()
main = do
  [arg] <- getArgs
  let rounds = read arg :: Int
  caught <- newIORef (0 :: Int)
  forM_ [1 .. rounds] $ \i -> do
    r <- try (evaluate (deep (i `mod` 30)))
    case r of
      Left (ErrorCall _) -> modifyIORef' caught (+ 1)
      Right _ -> return ()
    r2 <- try (evaluate (i `div` 0))
    case r2 of
      Left DivideByZero -> modifyIORef' caught (+ 1)
      Left (e :: ArithException) -> print e
      Right n -> print n
  readIORef caught >>= print
  print (foldl' (\s i -> s + size (grow (i `mod` 10))) 0 [1 .. rounds])
  let m = foldl' (\a i -> M.insertWith (+) (show (i `mod` 97)) i a) M.empty [1 .. rounds * 10]
  print (M.foldl' (+) 0 m, take 3 (M.keys m))
  performMajorGC
  v <- newTVarIO (0 :: Int)
  done <- newEmptyMVar
  forM_ [1 .. 50 :: Int] $ \t -> forkIO $ do
    forM_ [1 .. rounds `div` 10] $ \i -> do
      atomically (modifyTVar' v (+ (t * i `mod` 7)))
      when (i `mod` 20 == 0) yield
    putMVar done ()
  replicateM_ 50 (takeMVar done)
  readTVarIO v >>= print
  r <- timeout 20000 (forever (threadDelay 1000)) :: IO (Maybe ())
  print r
  killed <- newEmptyMVar
  t <- forkIO (forever yield `catch` \e -> putMVar killed (show (e :: AsyncException)))
  yield
  killThread t
  takeMVar killed >>= putStrLn
  dead <- try (newEmptyMVar >>= takeMVar) :: IO (Either BlockedIndefinitelyOnMVar ())
  print dead
  compare' <- mkCompare (\a b -> (\x y -> fromIntegral (fromEnum (compare x y)) - 1) <$> peek a <*> peek b)
  xs <- withArrayLen (map (\i -> fromIntegral (i * 7919 `mod` 1009)) [1 .. 200 :: Int]) $ \n p -> do
    cQsort p (fromIntegral n) 4 compare'
    peekArray n p
  print (xs == sort xs, round (sum (map cSin [1 .. 100]) * 1000) :: Int)
