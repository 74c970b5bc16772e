%% SPDX-License-Identifier: LGPL-2.1-or-later
%% Erlang: many processes, messages, links and monitors, exceptions, collections, binaries, ets, timers, big numbers.
-module(processes).
-export([main/1]).

main([Arg]) ->
    Rounds = list_to_integer(atom_to_list(Arg)),
    process_flag(trap_exit, true),
    io:format("~p~n", [ring(200, Rounds div 10)]),
    io:format("~p~n", [lists:sum([caught(I) || I <- lists:seq(1, Rounds)])]),
    Pids = [spawn_link(fun() -> worker(I, Rounds) end) || I <- lists:seq(1, 50)],
    Sums = [receive {'EXIT', P, {sum, S}} -> S end || P <- Pids],
    io:format("~p~n", [lists:sum(Sums)]),
    T = ets:new(t, [ordered_set, public]),
    [ets:insert(T, {I * 7919 rem 1009, I}) || I <- lists:seq(1, Rounds * 5)],
    io:format("~p ~p~n", [ets:info(T, size), ets:first(T)]),
    io:format("~p~n", [erlang:phash2(lists:foldl(fun(X, A) -> X * A end, 1, lists:seq(1, 500)))]),
    Text = iolist_to_binary([[integer_to_list(I), $,] || I <- lists:seq(1, Rounds * 5)]),
    io:format("~p ~p~n", [byte_size(Text), erlang:md5(Text)]),
    io:format("~p~n", [length(binary:split(Text, <<",">>, [global]))]),
    io:format("~p~n", [binary_to_term(term_to_binary({self() =:= self(), #{a => [1, 2.5, <<"x">>]}}, [compressed]))]),
    erlang:send_after(1, self(), late),
    receive late -> io:format("late~n") end,
    {_, Ref} = spawn_monitor(fun() -> erlang:error(gone) end),
    receive {'DOWN', Ref, process, _, {gone, _}} -> io:format("down~n") end,
    erlang:garbage_collect(),
    io:format("~p~n", [re:run(<<"the quick brown fox">>, "(\\w+) (fox)", [{capture, all, binary}])]),
    halt(0).

ring(N, Turns) ->
    First = self(),
    Last = lists:foldl(fun(_, Next) -> spawn(fun() -> pass(Next) end) end, First, lists:seq(1, N)),
    turns(Last, Turns, 0).

turns(Last, 0, Sum) -> Last ! stop, Sum;
turns(Last, Turns, Sum) ->
    Last ! {n, 0},
    receive {n, X} -> turns(Last, Turns - 1, Sum + X) end.

pass(Next) ->
    receive
        {n, X} -> Next ! {n, X + 1}, pass(Next);
        stop -> Next ! stop
    end.

deep(0) -> error(bottom);
deep(N) -> 1 + deep(N - 1).

caught(I) ->
    A = try deep(I rem 10) catch error:bottom:Stack -> length([x || {processes, deep, _, _} <- Stack]) end,
    B = try list_to_integer(hd([X || X <- ["x"], I > 0])) catch error:badarg -> 1 end,
    C = (catch throw(1)),
    A + B + C.

worker(I, Rounds) ->
    L = lists:map(fun(X) -> {X * I rem 17, integer_to_binary(X)} end, lists:seq(1, Rounds)),
    exit({sum, lists:sum([K * byte_size(B) || {K, B} <- lists:sort(L)])}).
